#pragma once

#include <functional>
#include <string>

#include "core/jit/ir/function.h"

namespace tensord::jit {

// Writes a module whose code is source that somebody wrote as an archive that PyTorch loads: its methods, with what
// they call inlined, and its tensors under their names. Throws Error{kUnimplemented} naming what has no form there (a
// call that is known only when it runs), else as write_model_archive does.
void save_archive(const std::string& path, const FunctionLibrary& functions, const ops::ObjectPtr& object,
                  const std::function<bool(const Tensor&)>& requires_grad);

}  // namespace tensord::jit
