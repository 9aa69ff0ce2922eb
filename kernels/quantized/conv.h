#pragma once

#include "kernels/quantized/conv_params.h"
#include "kernels/quantized/requantize.h"

namespace tensord::kernels {

// x: [n, c, d, h, w]; the result has its channels last in memory.
Tensor quantized_conv(const Tensor& x, const ConvParams& params, const Requantization& requantization);

}  // namespace tensord::kernels
