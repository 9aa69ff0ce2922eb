#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace tensord::server {

// The name of the first tensor (or gradient of it) that holds NaN or an infinity; empty when there is none.
std::string first_not_finite(const std::vector<std::pair<std::string, Tensor>>& tensors, bool gradients);

}  // namespace tensord::server
