#pragma once

#include <cmath>
#include <functional>

#include "core/ops/quantized.h"
#include "core/ops/run.h"

// Short names for operators on quantized tensors.
namespace tensord::kernels {

using ops::QuantizedPtr;
using ops::QuantizedTensor;
using ops::QuantizedType;
using ops::Quantizer;

// Throws Error naming what was expected.
const QuantizedTensor& quantized_of(const ops::Value& value);
// The same, of 8 bits with one scale for all of it.
const QuantizedTensor& bytes_of(const ops::Value& value);

ops::Value box(QuantizedType type, Tensor values, Quantizer quantizer);
Quantizer per_tensor(double scale, int64_t zero_point);
// The scale and zero point that a call gives for its result, by argument.
Quantizer per_tensor(const ops::Value& scale, const ops::Value& zero_point);

// float32 to numbers of `type` and back; strides are kept where they are dense.
Tensor quantize_values(const Tensor& x, QuantizedType type, const Quantizer& quantizer);
Tensor dequantize_values(const QuantizedTensor& x);

// What a number stands for, as PyTorch's vector code has it on the way to something else: rounded once, with the zero
// point's share rounded before. dequantize itself rounds otherwise.
class Dequantizer {
 public:
  explicit Dequantizer(const Quantizer& quantizer)
      : scale_(static_cast<float>(quantizer.scale)), offset_(scale_ * -static_cast<float>(quantizer.zero_point)) {}
  float operator()(float q) const { return std::fma(scale_, q, offset_); }

 private:
  float scale_, offset_;
};

// A tensor of 8 bits where each number is a function of the one in x, in terms of what they stand for.
ops::Value map_bytes(const QuantizedTensor& x, const Quantizer& result, const std::function<float(float)>& function);

// An operator whose first tensors are quantized: a function of the raw values.
#define QUANTIZED_OP(NAME, ...)               \
  OP(NAME).dynamic_shape().constant_result(); \
  IMPL(NAME, ::tensord::ops::kQuantizedCPU, __VA_ARGS__)

}  // namespace tensord::kernels
