#pragma once

#include "core/ops/op.h"

namespace tensord::kernels {

// The shape, dtype, device and, where they are dense, the strides of x.
inline ops::TensorMeta like_self(const Tensor& x) {
  const bool dense = is_non_overlapping_and_dense(x.sizes(), x.strides());
  return {x.sizes(), x.dtype(), dense ? x.strides() : Dims(), x.device()};
}

}  // namespace tensord::kernels
