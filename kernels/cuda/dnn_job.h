#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/cuda/address.h"
#include "kernels/cuda/layers/conv_job.h"

namespace tensord::kernels {

// A convolution by cuDNN, without a bias: image, grid and weight are dense, channels first, in two or three dimensions.
// float32 and below are summed in float32.
struct DnnConvJob {
  ConvResult result = ConvResult::kGrid;
  int8_t dtype = 0;          // of all: float16, bfloat16, float32, float64
  bool allows_tf32 = false;  // float32 operands may be rounded to TF32
  int spatial = 2, groups = 1, samples = 1;
  int image_channels = 0, grid_channels = 0;  // of all groups
  int image[3] = {}, grid[3] = {}, kernel[3] = {}, stride[3] = {}, padding[3] = {}, dilation[3] = {};
  cuda::DeviceAddress image_at, grid_at, weight_at;

  // What LibraryTable::plan_convolution found.
  bool has_algorithm = false;  // without one, the library does not do such convolutions
  int algorithm = 0;
  size_t workspace_bytes = 0;
  cuda::DeviceAddress workspace;  // aligned to 256; the caller's
};

}  // namespace tensord::kernels
