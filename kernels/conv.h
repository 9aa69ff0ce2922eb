#pragma once

#include <optional>

#include "core/ops/op.h"
#include "core/tensor/tensor.h"

namespace tensord::kernels {

// Everything about a convolution but its tensors; one entry per spatial dimension in each list.
struct ConvGeometry {
  Dims stride, padding_low, padding_high, dilation;
  Dims output_padding;  // transposed only; else zeros
  int64_t groups = 1;
  bool is_transposed = false;

  size_t spatial() const { return stride.size(); }
};

// The lists as a call gives them: one entry stands for all. `spatial` is 1, 2 or 3.
// Throws Error with PyTorch's text on a bad value.
ConvGeometry make_conv_geometry(size_t spatial, const Dims& stride, const Dims& padding, const Dims& dilation,
                                int64_t groups, bool is_transposed = false, const Dims& output_padding = {});

// The same with padding "valid" or "same" for a kernel of the weight's sizes.
ConvGeometry make_conv_geometry(const Dims& weight_sizes, const Dims& stride, const std::string& padding,
                                const Dims& dilation, int64_t groups);

// Sizes of the result (batched as the input is). Throws Error with PyTorch's text when shapes do not agree.
Dims conv_output_sizes(const char* op, const Dims& input, const Dims& weight, const ConvGeometry& geometry);
void check_conv_bias(const Dims& weight, const Dims& bias, const ConvGeometry& geometry);

// out = convolution of input, in out's memory order; input may be unbatched. CPU.
// REQUIRES: shapes as conv_output_sizes says; all of one dtype.
void conv_forward(const ConvGeometry& geometry, const Tensor& input, const Tensor& weight,
                  const std::optional<Tensor>& bias, Tensor& out);

// By columns of the input and a matrix product, for every dtype. Same requirements; input batched.
void conv_by_gemm(const ConvGeometry& geometry, const Tensor& input, const Tensor& weight,
                  const std::optional<Tensor>& bias, Tensor& out);

}  // namespace tensord::kernels
