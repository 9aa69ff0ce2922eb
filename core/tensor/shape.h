#pragma once

#include <cstdint>
#include <string_view>

#include "core/tensor/dims.h"

namespace tensord {

// The largest number of dimensions of a tensor, as in PyTorch.
inline constexpr size_t kMaxDims = 64;

// Product of the sizes. Throws Error{kInvalidArgument} on a negative size or
// when the product does not fit int64.
int64_t checked_numel(std::span<const int64_t> sizes);

// Strides of a row-major tensor; a size of 0 counts as 1, as in PyTorch.
Dims contiguous_strides(std::span<const int64_t> sizes);

// Strides of memory order N, spatial…, C for a tensor of 4 or 5 sizes.
Dims channels_last_strides(std::span<const int64_t> sizes);

// Dimensions of size 1 may have any stride; tensors without elements are contiguous.
bool is_contiguous(std::span<const int64_t> sizes, std::span<const int64_t> strides);
bool is_channels_last(std::span<const int64_t> sizes, std::span<const int64_t> strides);
// Whether each element of the spanned memory belongs to exactly one index, with dimensions in any order.
bool is_non_overlapping_and_dense(std::span<const int64_t> sizes, std::span<const int64_t> strides);

// Broadcasts two shapes. Throws Error{kInvalidArgument} with PyTorch's message.
Dims broadcast_sizes(std::span<const int64_t> a, std::span<const int64_t> b);

// Strides that read a tensor (sizes, strides) as if expanded to `to`; 0 where broadcast.
// REQUIRES: sizes broadcast to `to`.
Dims broadcast_strides(std::span<const int64_t> sizes, std::span<const int64_t> strides, std::span<const int64_t> to);

// Maps a negative dimension to 0 … ndim-1. A 0-d tensor accepts -1 and 0. Throws Error{kOutOfRange} with PyTorch's
// message.
int64_t wrap_dim(int64_t dim, int64_t ndim);
// The same for reading a size or stride, of which a 0-d tensor has none.
int64_t axis_of(int64_t dim, int64_t ndim);

// Replaces one -1 in the sizes so that their product is numel. Throws as PyTorch does.
Dims infer_view_sizes(std::span<const int64_t> requested, int64_t numel);

// Strides of a view with new sizes over the same memory. Sets `*possible` to false and returns an empty list if the
// memory order does not allow one.
Dims view_strides(std::span<const int64_t> sizes, std::span<const int64_t> strides, std::span<const int64_t> new_sizes,
                  bool* possible);

}  // namespace tensord
