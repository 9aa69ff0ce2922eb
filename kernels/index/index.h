#pragma once

#include <optional>
#include <vector>

#include "core/ops/unbox.h"
#include "core/tensor/tensor.h"
#include "kernels/base/positions.h"

// Reading and writing by index tensors, shared by the operator families in kernels/.
namespace tensord::kernels {

// int64 [count, ndim]: the positions of the elements that are not zero, row-major order.
Tensor nonzero(const Tensor& x);
// x[indices…] as in Python, where none stands for a full slice; masks are expanded.
Tensor index(const Tensor& x, const ops::OptionalTensorList& indices);
// x[indices…] = values, or += when `accumulate`.
void index_put(const Tensor& x, const ops::OptionalTensorList& indices, const Tensor& values, bool accumulate);

}  // namespace tensord::kernels
