#pragma once

#include <cstdint>

#include "core/tensor/cuda/address.h"

namespace tensord::kernels {

// Resampling over three dimensions; missing leading ones have size 1. The host computes the taps; see Resampling in
// kernels/vision/upsample.h. Strides are those of sample, channel and the dimensions.
struct ResampleJob {
  int8_t loop = 0, in_dtype = 0, out_dtype = 0;
  int8_t width = 0;          // bytes of an element to copy; 0: elements are weighted
  bool is_backward = false;  // adds `out`'s gradient to `in`
  bool is_last = false;      // channels are contiguous
  bool is_ordered = false;   // of a backward: a thread for each plane, so that sums are in a fixed order
  int64_t batch = 0, channels = 0;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  int64_t taps[3] = {1, 1, 1}, first[3] = {0, 0, 0};  // of each dimension, and the begin of its taps
  int64_t in_strides[5] = {}, out_strides[5] = {};
  cuda::DeviceAddress in_at, out_at;
  cuda::DeviceAddress index, weight;  // int64 and double, one dimension after another
};

// grid_sampler over three dimensions; see kernels/vision/grid_sampler.h.
struct GridSampleJob {
  int8_t dtype = 0, interpolation = 0, padding = 0;
  bool align_corners = false, is_backward = false;
  int spatial = 2;
  int64_t batch = 0, channels = 0;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  int64_t input_strides[5] = {}, out_strides[5] = {}, of_input_strides[5] = {};
  int64_t grid_strides[5] = {};  // sample, three dimensions, numbers
  cuda::DeviceAddress input, grid;
  cuda::DeviceAddress result;             // the result, or the incoming gradient
  cuda::DeviceAddress of_input, of_grid;  // null: not asked for; the first is added to, the second is dense
};

}  // namespace tensord::kernels
