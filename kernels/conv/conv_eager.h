#pragma once

#include "kernels/conv/conv.h"

// f32 convolutions by the kernels of packed ones (kernel.h), with weights packed for one call: for training, whose
// weights change in every step.
namespace tensord::kernels {

// Each returns false and does nothing if oneDNN is faster or the kernels do not cover the call. `geometry` is not
// transposed; tensors are batched, f32, dense or channels_last.
bool try_eager_conv(const ConvGeometry& geometry, const Tensor& input, const Tensor& weight, const Tensor* bias,
                    const Tensor& out);
// The gradient for the input: a convolution of stride 1 of the result's gradient with the reversed kernels.
bool try_eager_input_gradient(const ConvGeometry& geometry, const Tensor& grad, const Tensor& weight,
                              const Tensor& out);
// The gradient for a 3x3 weight of stride 1, by Winograd's algorithm too.
bool try_eager_weight_gradient(const ConvGeometry& geometry, const Tensor& grad, const Tensor& input,
                               const Tensor& out);

}  // namespace tensord::kernels
