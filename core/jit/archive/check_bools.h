#pragma once

#include <string>

#include "core/tensor/tensor.h"

namespace tensord::jit {

// Throws Error{kDataLoss} where a bool that came from a file is neither 0 nor 1, which kernels would count and select
// by in different ways. Other dtypes are not looked at. `source`: the file and the tensor.
void check_bools(const Tensor& tensor, const std::string& source);

}  // namespace tensord::jit
