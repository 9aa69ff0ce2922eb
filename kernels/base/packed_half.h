#pragma once

#include <limits>

#include "core/ops/attributes/packed.h"

namespace tensord::kernels {

// The steps after a packed call, in this order; each rounds to the tensor's dtype, as a call of its own does.
struct HalfSteps {
  Tensor scale, shift;  // float32, one for each channel; undefined: no affine step
  bool has_add = false, has_clamp = false;
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();

  bool is_none() const { return !scale.defined() && !has_add && !has_clamp; }
  bool join(const ops::Epilogue& next);
};

// A packed operator for float32 that can also be prepared for bfloat16 tensors without a conversion.
class ReadsHalves {
 public:
  virtual ~ReadsHalves() = default;
  // As PackedOp::prepare, followed by `steps`; null if it cannot.
  virtual std::unique_ptr<ops::PreparedCall> prepare_halves(const Tensor& input, const Tensor& other,
                                                            const ops::PrepareArgs& args,
                                                            const HalfSteps& steps) const = 0;
};

// A packed operator for tensors of float16 or bfloat16: `wide` computes the call of `args` in float32, after its input
// is widened and before its result is rounded. Batch norm, a sum and a clamp (relu, relu6, hardtanh) are fused to it in
// this order, and each rounds as the separate call does, so that results are bitwise equal.
IntrusivePtr<ops::PackedOp> pack_half(const ops::PackArgs& args, DType dtype, IntrusivePtr<ops::PackedOp> wide);

// A prepared call for tensors of which some are float16 or bfloat16: `wide` is the call for the same tensors with these
// in float32, as wide_meta() describes them. At most 8 inputs and 8 outputs.
std::unique_ptr<ops::PreparedCall> widen_call(std::unique_ptr<ops::PreparedCall> wide, std::span<const Tensor> inputs,
                                              std::span<const Tensor> outputs);
// The same strides if the tensor is dense, else row-major.
Tensor wide_meta(const Tensor& like);

inline bool is_half(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

}  // namespace tensord::kernels
