#pragma once

#include <cstdint>

#include "core/tensor/cuda/address.h"

namespace tensord::kernels {

// A convolution connects an image with a grid: each place of the grid has a window of the image. A pass computes the
// grid (the forward), the image (its gradient, and the transposed forward), or the weight.
enum class ConvResult : int8_t { kGrid, kImage, kWeight };

// Every pass is a matrix product for each group, c[m][n] = sum over k of a[m][k] b[k][n]. n and k consist of a leading
// number (a sample, or a channel of the group) and three positions. Missing leading dimensions have size 1.
struct ConvJob {
  ConvResult result = ConvResult::kGrid;
  int8_t dtype = 0;
  bool is_direct = false;  // without tiles: groups with few rows
  int parts = 1;           // parts of k, where m and n are small and k is long
  int64_t groups = 1, m = 0, n = 0, k = 0;
  int64_t image_channels = 0, grid_channels = 0;  // in a group
  int image[3] = {1, 1, 1}, grid[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int n_sizes[3] = {1, 1, 1}, k_sizes[3] = {1, 1, 1};
  int stride[3] = {1, 1, 1}, padding[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};
  // The strides of sample or channel in the grid, of the channel, and of three dimensions.
  int64_t image_strides[5] = {}, grid_strides[5] = {}, weight_strides[5] = {};
  int64_t bias_stride = 0;
  cuda::DeviceAddress image_at, grid_at, weight_at;
  cuda::DeviceAddress bias;     // for the channels of the result; null: none
  cuda::DeviceAddress partial;  // parts * groups * m * n numbers of the type of computation
};

}  // namespace tensord::kernels
