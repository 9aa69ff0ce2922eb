#pragma once

#include <vector>

#include "kernels/quantized/tensors.h"

// Loops over tensors of 8 bits.
namespace tensord::kernels {

// Two of one type, which are broadcast, and what their result has.
struct BytePair {
  const QuantizedTensor &a, &b;
  Quantizer result;
  bool relu;
};
// Of elementwise_cpu.cpp.
ops::Value add_bytes(const BytePair& pair);
ops::Value mul_bytes(const BytePair& pair);

// y = (x - mean) / sqrt(var + eps) * weight + bias, by channel, which is dimension 1.
struct ByteNorm {
  std::vector<float> weight, bias, mean, var;
  float eps;
  Quantizer result;
  bool relu;
};
// Of batch_norm_cpu.cpp.
ops::Value norm_bytes(const QuantizedTensor& x, const ByteNorm& norm);

}  // namespace tensord::kernels
