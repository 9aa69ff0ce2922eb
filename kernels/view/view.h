#pragma once

#include <optional>
#include <vector>

#include "core/ops/unbox.h"
#include "core/tensor/tensor.h"

// Views over a tensor's storage, shared by the operator families in kernels/. All accept meta tensors and throw Error
// with PyTorch's messages on bad dimensions.
namespace tensord::kernels {

using ops::IntList;

Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1);
Tensor permute(const Tensor& x, const IntList& dims);
Tensor unsqueeze(const Tensor& x, int64_t dim);
// Removes dimension `dim`, at `index` (negative counts from the end).
Tensor select(const Tensor& x, int64_t dim, int64_t index);
// Python's slice of one dimension; `step` must be positive.
Tensor slice(const Tensor& x, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end, int64_t step);
Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length);
// -1 keeps a size.
Tensor expand(const Tensor& x, const IntList& sizes);
// A view with the new shape; throws if the memory order does not allow one.
Tensor view(const Tensor& x, const IntList& sizes);
// A view if possible, else a row-major copy.
Tensor reshape(const Tensor& x, const IntList& sizes);
// The diagonal of dimensions dim1 and dim2, as the last dimension.
Tensor diagonal(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2);
// Windows of `size` along a dimension, `step` apart, as the last dimension.
Tensor unfold(const Tensor& x, int64_t dimension, int64_t size, int64_t step);
// With the sizes and strides given, anywhere in x's storage; bounds are checked.
Tensor as_strided(const Tensor& x, const IntList& sizes, const IntList& strides, int64_t offset);
std::vector<Tensor> split_with_sizes(const Tensor& x, const IntList& sizes, int64_t dim);
std::vector<Tensor> split(const Tensor& x, int64_t size, int64_t dim);
std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t dim);

}  // namespace tensord::kernels
