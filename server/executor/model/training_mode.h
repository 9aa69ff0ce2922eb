#pragma once

#include <string>

#include "core/jit/runtime/module.h"

namespace tensord::server {

// What is to be said of a model that was saved in training mode and acts so: by layers such as dropout and batch norm
// that a run comes to, or because its code asks for the mode. Empty where it makes no difference.
std::string training_mode_warning(const std::string& file, const jit::Module& module, const jit::Method& method);

}  // namespace tensord::server
