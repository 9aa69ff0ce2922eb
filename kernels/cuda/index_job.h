#pragma once

#include <cstdint>

#include "core/tensor/cuda/address.h"

namespace tensord::kernels {

inline constexpr int kIndexDims = 12, kIndexTensors = 6;

enum class IndexUse : int8_t { kRead, kWrite, kAdd, kMultiply, kLargest, kSmallest };

// For each position of a nest of loops one element of x, at the offset that the loops give and one index of each tensor
// of indices adds to, and one element of `other`: other = x, x = other, or x becomes their sum, product, maximum or
// minimum.
struct IndexJob {
  IndexUse use = IndexUse::kRead;
  int8_t dtype = 0;
  int8_t width = 0;             // bytes of an element
  bool takes_negative = false;  // indices that count from the end
  bool is_int32[kIndexTensors] = {};
  int8_t error = 0;  // KernelError of an index out of range
  int dims = 0, tensors = 0;
  int64_t numel = 0;
  int64_t skipped = INT64_MIN;  // positions with this index are left out
  double factor = 1;            // of kAdd
  int64_t integer_factor = 1;
  int64_t sizes[kIndexDims] = {}, x_strides[kIndexDims] = {}, other_strides[kIndexDims] = {};
  int64_t index_strides[kIndexTensors][kIndexDims] = {};
  int64_t index_sizes[kIndexTensors] = {}, index_steps[kIndexTensors] = {}, index_dims[kIndexTensors] = {};
  cuda::DeviceAddress indices[kIndexTensors];
  cuda::DeviceAddress x, other, errors;
};

}  // namespace tensord::kernels
