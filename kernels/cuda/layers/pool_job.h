#pragma once

#include <cstdint>

#include "core/tensor/cuda/address.h"
#include "core/tensor/cuda/error_word.h"

namespace tensord::kernels {

enum class PoolTask : int8_t { kMax, kAverage, kMaxBackward, kAverageBackward };
enum class PoolPlaces : int8_t { kStrided, kAdaptive, kFractional };  // of the windows

// Pooling over three dimensions; missing leading ones have size 1. In a backward, `small` is the incoming gradient and
// `large` the result, to which max pooling adds. Strides are those of sample, channel and the dimensions.
struct PoolJob {
  PoolTask task = PoolTask::kMax;
  PoolPlaces places = PoolPlaces::kStrided;
  int8_t loop = 0, x_dtype = 0, large_dtype = 0, small_dtype = 0;
  int8_t divisor = 0;       // PoolDivisor
  bool is_last = false;     // channels are contiguous
  bool is_ordered = false;  // of kMaxBackward: a thread for each plane, so that sums are in a fixed order
  int spatial = 2;
  int64_t fixed = 1, batch = 0, channels = 0;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  int64_t kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, padding[3] = {0, 0, 0}, step[3] = {1, 1, 1};
  int64_t x_strides[5] = {}, large_strides[5] = {}, small_strides[5] = {}, index_strides[5] = {};
  cuda::DeviceAddress x;        // for max: the values that are compared
  cuda::DeviceAddress large;    // in a backward: the gradient that is written
  cuda::DeviceAddress small;    // the result, or the incoming gradient
  cuda::DeviceAddress indices;  // int64; null: not asked for, or not given
  cuda::DeviceAddress samples;  // for fractional windows: `spatial` numbers for each plane
  cuda::ErrorSink errors;
};

}  // namespace tensord::kernels
