#pragma once

#include "core/ops/op.h"

namespace tensord::kernels {

// PyTorch skips 1-d tensors with zero elements, whatever the shapes of the others.
inline bool is_skipped(const Tensor& x) { return x.ndim() == 1 && x.numel() == 0; }

// Fills `out` with the tensors one after the other along `dim`.
void cat_kernel(const ops::KernelContext& context, const ops::TensorList& tensors, int64_t dim, Tensor& out);

}  // namespace tensord::kernels
