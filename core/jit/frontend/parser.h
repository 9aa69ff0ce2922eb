#pragma once

#include <memory>

#include "core/jit/frontend/ast.h"

namespace tensord::jit {

// Parses one script file: classes and functions with their bodies, in the subset of Python that TorchScript saves, plus
// the common operators of hand-written code. Throws Error with file, line and caret. Nesting is limited, so no text can
// overflow the stack.
std::unique_ptr<const SourceTree> parse_source(SourceText source);

}  // namespace tensord::jit
