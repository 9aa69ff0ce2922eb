#pragma once

#include "core/tensor/tensor.h"

// Reading an image at positions given by a grid; shared by the operators and their loops.
namespace tensord::kernels {

enum class Interpolation : int64_t { kBilinear, kNearest, kBicubic };
enum class GridPadding : int64_t { kZeros, kBorder, kReflection };

struct GridSampling {
  Interpolation interpolation;
  GridPadding padding;
  bool align_corners;
};

// input [N, C, spatial…], grid [N, spatial of out…, dimensions], out [N, C, spatial of out…]; 2 or 3 spatial
// dimensions, float32 or float64, any strides. No tensor is empty.
void grid_sample(const GridSampling& how, const Tensor& input, const Tensor& grid, const Tensor& out);
// Adds to `of_input` (zeros before) and writes `of_grid`; either may be undefined.
void grid_sample_backward(const GridSampling& how, const Tensor& grad, const Tensor& input, const Tensor& grid,
                          const Tensor& of_input, const Tensor& of_grid);
void grid_sample_cuda(const GridSampling& how, const Tensor& input, const Tensor& grid, const Tensor& out);
void grid_sample_backward_cuda(const GridSampling& how, const Tensor& grad, const Tensor& input, const Tensor& grid,
                               const Tensor& of_input, const Tensor& of_grid);

}  // namespace tensord::kernels
