#pragma once

#include "core/tensor/tensor.h"

namespace tensord {

// Dimensions from the slowest in memory to the fastest. Where strides say nothing (0, or equal) as PyTorch sorts them.
Dims memory_order(std::span<const int64_t> sizes, std::span<const int64_t> strides);
// Strides of a new tensor "like" one: the same when it is dense, else dense ones in the same order of dimensions.
Dims preserved_strides(std::span<const int64_t> sizes, std::span<const int64_t> strides);
// The same elements with the dimensions in that order.
Tensor permuted(const Tensor& x, std::span<const int64_t> order);

}  // namespace tensord
