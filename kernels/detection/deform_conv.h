#pragma once

#include <array>

#include "core/tensor/tensor.h"

// The columns of a deformable convolution (Dai et al., 2017; with a mask: Zhu et al., 2019), shared by the operator and
// its loops.
namespace tensord::kernels {

struct DeformGeometry {
  std::array<int64_t, 2> kernel, stride, padding, dilation, out;  // height, width
  int64_t offset_groups;

  int64_t taps() const { return kernel[0] * kernel[1]; }
  int64_t places() const { return out[0] * out[1]; }
};

// input [N, C, H, W], offset [N, groups · 2 · taps, places of out…] with y before x, mask [N, groups · taps, places of
// out…] or undefined, columns [N, C · taps, places]. All dense, of one of float32 and float64.
void deform_columns(const DeformGeometry& geometry, const Tensor& input, const Tensor& offset, const Tensor& mask,
                    const Tensor& columns);
// Adds to those of the gradients that are defined.
void deform_columns_backward(const DeformGeometry& geometry, const Tensor& grad, const Tensor& input,
                             const Tensor& offset, const Tensor& mask, const Tensor& of_input, const Tensor& of_offset,
                             const Tensor& of_mask);
void deform_columns_cuda(const DeformGeometry& geometry, const Tensor& input, const Tensor& offset, const Tensor& mask,
                         const Tensor& columns);
void deform_columns_backward_cuda(const DeformGeometry& geometry, const Tensor& grad, const Tensor& input,
                                  const Tensor& offset, const Tensor& mask, const Tensor& of_input,
                                  const Tensor& of_offset, const Tensor& of_mask);

}  // namespace tensord::kernels
