#pragma once

#include <string>

#include "core/tensor/tensor.h"

namespace tensord::jit {

// Throws Error{kDataLoss} if a bool tensor from a file has a byte other than 0 and 1, because kernels would count and
// select by such bytes inconsistently. Ignores other dtypes. `source` names the file and the tensor.
void check_bools(const Tensor& tensor, const std::string& source);

}  // namespace tensord::jit
