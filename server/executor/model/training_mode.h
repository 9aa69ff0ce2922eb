#pragma once

#include <string>

#include "core/jit/runtime/module.h"

namespace tensord::server {

// A warning for a model that was saved in training mode and behaves so, because it reaches layers such as dropout or
// batch norm, or reads `training`. Empty if the mode makes no difference.
std::string training_mode_warning(const std::string& file, const jit::Module& module, const jit::Method& method);

}  // namespace tensord::server
