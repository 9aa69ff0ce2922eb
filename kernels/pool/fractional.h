#pragma once

#include <cstdint>

#include "core/tensor/tensor.h"

namespace tensord::kernels {

// Depth, height and width of a plane; depth is 1 in two dimensions.
struct FractionalPool {
  int64_t in[3] = {1, 1, 1}, window[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  int64_t planes = 1;
  Dims sizes;  // of the result
};
// Throws Error with PyTorch's text for what does not fit.
FractionalPool make_fractional_pool(int dims, const Tensor& given, const Dims& window, const Dims& output,
                                    const Tensor& given_samples);

}  // namespace tensord::kernels
