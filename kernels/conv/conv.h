#pragma once

#include <optional>

#include "core/ops/op.h"
#include "core/tensor/tensor.h"

namespace tensord::kernels {

// The parameters of a convolution; one entry per spatial dimension in each list.
struct ConvGeometry {
  Dims stride, padding_low, padding_high, dilation;
  Dims output_padding;  // only if transposed; else zeros
  int64_t groups = 1;
  bool is_transposed = false;

  size_t spatial() const { return stride.size(); }
};

// From the lists of a call; a single entry stands for all dimensions. `spatial` is 1, 2 or 3. Throws Error with
// PyTorch's message on a bad value.
ConvGeometry make_conv_geometry(size_t spatial, const Dims& stride, const Dims& padding, const Dims& dilation,
                                int64_t groups, bool is_transposed = false, const Dims& output_padding = {});

// The same with padding "valid" or "same" for a kernel of the weight's sizes.
ConvGeometry make_conv_geometry(const Dims& weight_sizes, const Dims& stride, const std::string& padding,
                                const Dims& dilation, int64_t groups);

// Sizes of the result, batched as the input is. Throws Error with PyTorch's message if shapes do not agree.
Dims conv_output_sizes(const char* op, const Dims& input, const Dims& weight, const ConvGeometry& geometry);
void check_conv_bias(const Dims& weight, const Dims& bias, const ConvGeometry& geometry);

// out = convolution of input, in out's memory order; input may be unbatched. On the tensors' device, as the gradients.
// REQUIRES: shapes as conv_output_sizes says; all of one dtype.
void conv_forward(const ConvGeometry& geometry, const Tensor& input, const Tensor& weight,
                  const std::optional<Tensor>& bias, Tensor& out);

// The convolution from the image (the larger side) to the grid: a transposed convolution reversed, whose weights have
// the same layout; a plain one is returned as it is.
ConvGeometry conv_from_image(const ConvGeometry& geometry);

// The gradient for the input, in `out`'s memory order. All tensors batched and of one dtype.
void conv_input_gradient(const ConvGeometry& geometry, const Tensor& grad, const Tensor& weight, Tensor& out);
// The gradients for the weight, and for the bias unless that is null; dense tensors.
void conv_weight_gradient(const ConvGeometry& geometry, const Tensor& grad, const Tensor& input, Tensor& out,
                          Tensor* bias);
// Sums of each channel.
void conv_bias_gradient(const Tensor& grad, Tensor& out);

// The same on a CUDA device, all tensors batched.
void conv_forward_cuda(const ConvGeometry& geometry, const Tensor& input, const Tensor& weight,
                       const std::optional<Tensor>& bias, const Tensor& out);
void conv_input_gradient_cuda(const ConvGeometry& geometry, const Tensor& grad, const Tensor& weight,
                              const Tensor& out);
void conv_weight_gradient_cuda(const ConvGeometry& geometry, const Tensor& grad, const Tensor& input,
                               const Tensor& out);
void conv_bias_gradient_cuda(const Tensor& grad, const Tensor& out);

// By columns of the input and a matrix product, on the CPU for every dtype. Same requirements; input batched.
void conv_by_gemm(const ConvGeometry& geometry, const Tensor& input, const Tensor& weight,
                  const std::optional<Tensor>& bias, Tensor& out);
// The gradient for the weight the same way. `geometry` is not transposed.
void conv_weight_by_gemm(const ConvGeometry& geometry, const Tensor& image, const Tensor& grid, Tensor& out);

}  // namespace tensord::kernels
