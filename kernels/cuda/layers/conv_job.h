#pragma once

#include <cstdint>

#include "core/tensor/cuda/address.h"

namespace tensord::kernels {

// A convolution ties an image to a grid, of which each place has a window of the image. What is computed is the grid
// (the forward), the image (the gradient for it, and the transposed forward), or the weight.
enum class ConvResult : int8_t { kGrid, kImage, kWeight };

// Every pass is a product of matrices for each group, c[m][n] = sum over k of a[m][k] b[k][n]; n and k are a leading
// number (a sample, or a channel of the group) and three positions. Missing leading dimensions are of size 1.
struct ConvJob {
  ConvResult result = ConvResult::kGrid;
  int8_t dtype = 0;
  bool is_direct = false;  // without tiles: few rows in a group
  int parts = 1;           // of k, where m and n are few and k is long
  int64_t groups = 1, m = 0, n = 0, k = 0;
  int64_t image_channels = 0, grid_channels = 0;  // of a group
  int image[3] = {1, 1, 1}, grid[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int n_sizes[3] = {1, 1, 1}, k_sizes[3] = {1, 1, 1};
  int stride[3] = {1, 1, 1}, padding[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};
  // Sample or channel of the grid, channel, and three dimensions.
  int64_t image_strides[5] = {}, grid_strides[5] = {}, weight_strides[5] = {};
  int64_t bias_stride = 0;
  cuda::DeviceAddress image_at, grid_at, weight_at;
  cuda::DeviceAddress bias;     // of the channels of the result; null: none
  cuda::DeviceAddress partial;  // parts * groups * m * n numbers of the type of computation
};

}  // namespace tensord::kernels
