#pragma once

#include "kernels/conv/conv.h"
#include "kernels/cuda/layers/conv_job.h"

namespace tensord::kernels {

// Queues a pass of a convolution, without a bias, by cuDNN; all tensors batched and of one dtype. Returns false, and
// does nothing, where there is no cuDNN or it does not take the convolution.
bool conv_by_library(ConvResult result, const ConvGeometry& g, const Tensor& image, const Tensor& grid,
                     const Tensor& weight);

}  // namespace tensord::kernels
