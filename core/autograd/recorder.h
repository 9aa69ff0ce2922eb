#pragma once

#include "core/base/execution_context.h"

namespace tensord::autograd {

// Registers autograd's kernels for all operators. Called before main wherever this library is linked.
void install_recorder();

// During its lifetime, operators on the calling thread only compute: calls inside an operator are not recorded, and
// views are not tracked. Grad mode does not change.
struct BelowAutogradScope : ContextPart<&ExecutionContext::excluded_keys> {
  BelowAutogradScope() : ContextPart(execution_context().excluded_keys | kAutogradKeys) {}
};

}  // namespace tensord::autograd
