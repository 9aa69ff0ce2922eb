#pragma once

#include <vector>

#include "core/ops/op.h"
#include "kernels/conv/conv.h"

namespace tensord::kernels {

// The gradients of a convolution with arguments (input, weight, bias, …), by aten::convolution_backward.
std::vector<Tensor> conv_gradient(const ops::GradArgs& args, const ConvGeometry& geometry);

}  // namespace tensord::kernels
