#pragma once

#include <cstdint>

#include "core/tensor/cuda/address.h"
#include "core/tensor/cuda/error_word.h"

namespace tensord::kernels {

inline constexpr int kIndexDims = 12, kIndexTensors = 6;

enum class IndexUse : int8_t { kRead, kPlaces, kWrite, kAdd, kMultiply, kLargest, kSmallest };

// For each position of a nest of loops one element of x, at the offset that the loops give and one index of each tensor
// of indices adds to, and one element of `other`: other = x, x = other, or x becomes their sum, product, maximum or
// minimum. kPlaces writes the offsets into x, as int64, to a dense `other`; INT64_MAX for positions that are left out.
//
// With `places`, positions that write to one element of x do so in their order: `places` are the offsets of kPlaces in
// ascending order, and `order` the positions that they are of, those of one offset in ascending order.
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
  cuda::DeviceAddress x, other;
  cuda::DeviceAddress places, order;  // null: in any order
  cuda::ErrorSink errors;
};

// embedding_bag: sums, means or maxima of rows of a table. Indices and offsets are dense and of int64, weights dense
// and of the table's dtype, results dense; what belongs to indices of bags is of `index_dtype`.
struct BagJob {
  int8_t dtype = 0, index_dtype = 0, mode = 0;          // mode: BagMode
  int64_t rows = 0, width = 0, row_step = 0, step = 0;  // of the table
  int64_t bags = 0, offset_count = 0, index_count = 0, padding = -1;
  cuda::DeviceAddress table, indices, offsets, weights;   // weights may be null
  cuda::DeviceAddress out, bag_of_index, counts, maxima;  // all but out may be null
  cuda::ErrorSink errors;
};

}  // namespace tensord::kernels
