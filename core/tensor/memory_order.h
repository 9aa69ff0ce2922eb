#pragma once

#include "core/tensor/tensor.h"

namespace tensord {

// Dimensions from the slowest in memory to the fastest. Where strides do not decide (0, or equal), the order is
// PyTorch's.
Dims memory_order(std::span<const int64_t> sizes, std::span<const int64_t> strides);
// Strides of a new tensor "like" another: the same if that is dense, otherwise dense strides in the same order of
// dimensions.
Dims preserved_strides(std::span<const int64_t> sizes, std::span<const int64_t> strides);
// Views the same elements with the dimensions in that order.
Tensor permuted(const Tensor& x, std::span<const int64_t> order);

}  // namespace tensord
