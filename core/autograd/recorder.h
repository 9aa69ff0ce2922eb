#pragma once

#include "core/base/execution_context.h"

namespace tensord::autograd {

// Gives operators their code for autograd. Called before main wherever this library is linked.
void install_recorder();

// While it lives, the calling thread's operators compute and nothing else: what an operator does inside
// is not recorded, nor are its views tracked. Grad mode stays what it is.
struct BelowAutogradScope : ContextPart<&ExecutionContext::excluded_keys> {
  BelowAutogradScope() : ContextPart(execution_context().excluded_keys | kAutogradKeys) {}
};

}  // namespace tensord::autograd
