#pragma once

#include <functional>
#include <string>

#include "core/jit/ir/function.h"

namespace tensord::jit {

// A method that is written: what its graph, with calls inlined, computes.
struct TorchScriptMethod {
  std::string name;
  const ops::Schema* schema = nullptr;  // without self
  const Graph* graph = nullptr;
};

// Writes a model of another format as a TorchScript archive with its parameters and buffers under their names. Throws
// Error{kUnimplemented} naming operator and place where TorchScript has no words for it. `requires_grad` says which
// tensors are written as such; empty: none.
void export_torchscript(const std::string& path, const ops::ObjectPtr& object,
                        const std::vector<TorchScriptMethod>& methods,
                        const std::function<bool(const Tensor&)>& requires_grad = {});

}  // namespace tensord::jit
