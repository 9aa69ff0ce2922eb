#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace tensord::server {

// The name of the first tensor (or gradient of it) that holds NaN or an infinity; empty when there is none.
std::string first_non_finite(const std::vector<std::pair<std::string, Tensor>>& tensors, bool gradients);

// The name and the magnitude of the tensor with the largest one. REQUIRES: all are finite.
std::pair<std::string, double> largest(const std::vector<std::pair<std::string, Tensor>>& tensors);

}  // namespace tensord::server
