#pragma once

#include "core/tensor/tensor.h"

namespace tensord::kernels {

// Whether a tensor of integers on the processor has a zero.
bool has_zero_element(const Tensor& x);

}  // namespace tensord::kernels
