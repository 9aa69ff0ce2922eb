#pragma once

#include <functional>
#include <string>

#include "core/jit/ir/function.h"

namespace tensord::jit {

// Writes a module from hand-written source as an archive that PyTorch loads: its methods, with calls inlined, and its
// tensors under their names. Throws Error{kUnimplemented} naming what cannot be written (a call that is only resolved
// at run time), otherwise as write_model_archive does.
void save_archive(const std::string& path, const FunctionLibrary& functions, const ops::ObjectPtr& object,
                  const std::function<bool(const Tensor&)>& requires_grad);

}  // namespace tensord::jit
