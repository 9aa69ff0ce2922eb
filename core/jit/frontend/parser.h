#pragma once

#include <memory>

#include "core/jit/frontend/ast.h"

namespace tensord::jit {

// Parses one script file: classes and functions with their bodies, in the subset of Python
// that TorchScript saves, and the plain operators that people write. Throws Error with file,
// line and caret; nesting is bounded, so no text can exhaust the stack.
std::unique_ptr<const SourceTree> parse_source(SourceText source);

}  // namespace tensord::jit
