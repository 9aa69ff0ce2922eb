#pragma once

#include <optional>

#include "core/ops/op.h"
#include "core/tensor/tensor.h"

namespace tensord::kernels {

// Which dimensions a reduction removes, from its `dim` argument: none given means all.
struct ReducedDims {
  std::array<bool, kMaxDims> is_reduced{};
  int64_t count = 1;  // elements each output reduces

  // Throws Error on a bad or repeated dimension.
  ReducedDims(const Tensor& in, const std::optional<Dims>& dims);
  Dims sizes(const Tensor& in, bool keepdim) const;
  ops::TensorMeta meta(const Tensor& in, bool keepdim, DType dtype) const {
    return {sizes(in, keepdim), dtype, {}, in.device()};
  }
  // `out` seen with size 1 where reduced.
  Tensor kept(const Tensor& in, const Tensor& out, bool keepdim) const;
};

// An argument `dim`: none, a number or a list.
inline std::optional<ops::IntList> dims_of(const ops::Value& value) {
  if (value.is_none()) return std::nullopt;
  if (value.is_int()) return ops::IntList{value.to_int()};
  return ops::Unbox<ops::IntList>::get(value);
}

// The gradient of an operator (self, dim, …) -> (values, indices) that chooses one element along a dimension, or
// keeps it with size 1: g goes to where it was chosen.
Tensor chosen_gradient(const ops::GradArgs& args, Tensor g);

}  // namespace tensord::kernels
