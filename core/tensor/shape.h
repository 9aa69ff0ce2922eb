#pragma once

#include <cstdint>
#include <string_view>

#include "core/tensor/dims.h"

namespace tensord {

// Most dimensions a tensor may have; as in PyTorch.
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
// Every element of the spanned memory belongs to exactly one index, in any order of dimensions.
bool is_non_overlapping_and_dense(std::span<const int64_t> sizes, std::span<const int64_t> strides);

// Broadcast of two shapes. Throws Error{kInvalidArgument} with PyTorch's text.
Dims broadcast_sizes(std::span<const int64_t> a, std::span<const int64_t> b);

// Strides that read a tensor (sizes, strides) as if expanded to `to`; 0 where broadcast.
// REQUIRES: sizes broadcast to `to`.
Dims broadcast_strides(std::span<const int64_t> sizes, std::span<const int64_t> strides, std::span<const int64_t> to);

// Turns a negative dimension into 0 … ndim-1. A 0-d tensor accepts -1 and 0.
// Throws Error{kOutOfRange} with PyTorch's text.
int64_t wrap_dim(int64_t dim, int64_t ndim);
// The same for reading a size or stride, which a 0-d tensor does not have.
int64_t axis_of(int64_t dim, int64_t ndim);

// Sizes with one -1 replaced so that the product is numel. Throws as PyTorch does.
Dims infer_view_sizes(std::span<const int64_t> requested, int64_t numel);

// Strides of a view with new sizes over the same memory; empty when the memory
// order does not allow one and `*possible` is then false.
Dims view_strides(std::span<const int64_t> sizes, std::span<const int64_t> strides, std::span<const int64_t> new_sizes,
                  bool* possible);

}  // namespace tensord
