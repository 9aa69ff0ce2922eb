#pragma once

#include "core/ops/attributes/packed.h"

namespace tensord::kernels {

// What follows a packed call, in this order; each rounds to halves, as a call of its own does.
struct HalfSteps {
  Tensor scale, shift;  // float32, one for each channel; undefined: no affine step
  bool has_add = false, has_relu = false;

  bool is_none() const { return !scale.defined() && !has_add && !has_relu; }
  bool join(const ops::Epilogue& next);
};

// A packed operator for float32 that can also be prepared for tensors of bfloat16 as they lie in memory.
class ReadsHalves {
 public:
  virtual ~ReadsHalves() = default;
  // As PackedOp::prepare, with `steps` behind the call; null where it can not.
  virtual std::unique_ptr<ops::PreparedCall> prepare_halves(const Tensor& input, const Tensor& other,
                                                            const ops::PrepareArgs& args,
                                                            const HalfSteps& steps) const = 0;
};

// A packed operator for tensors of float16 or bfloat16: `wide` does the call of `args` in float32, its input is
// widened before and its result rounded after. Batch norm, a sum and relu are joined to it in this order, and round
// each as the calls do, so that no bit is another.
IntrusivePtr<ops::PackedOp> pack_half(const ops::PackArgs& args, DType dtype, IntrusivePtr<ops::PackedOp> wide);

// A prepared call for tensors of which some are halves, as they lie in memory: `wide` is the call for the others as
// they are and for these in float32, as wide_meta() says. At most 8 inputs and 8 outputs.
std::unique_ptr<ops::PreparedCall> widen_call(std::unique_ptr<ops::PreparedCall> wide, std::span<const Tensor> inputs,
                                              std::span<const Tensor> outputs);
// The same strides where the tensor is dense, else row-major.
Tensor wide_meta(const Tensor& like);

inline bool is_half(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

}  // namespace tensord::kernels
