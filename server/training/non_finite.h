#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace tensord::server {

// The name of the first tensor (or the first with such a gradient) that contains NaN or infinity; empty if there is
// none.
std::string first_non_finite(const std::vector<std::pair<std::string, Tensor>>& tensors, bool gradients);

// The name and largest magnitude of the tensor with the largest magnitude. REQUIRES: all values are finite.
std::pair<std::string, double> largest(const std::vector<std::pair<std::string, Tensor>>& tensors);

}  // namespace tensord::server
