#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/jit/ir/function.h"

namespace tensord::jit {

// A method to write, with the graph that it computes (calls inlined).
struct TorchScriptMethod {
  std::string name;
  const ops::Schema* schema = nullptr;  // without self
  const Graph* graph = nullptr;
};

// Writes a model of another format as a TorchScript archive with its parameters and buffers under their names. Throws
// Error{kUnimplemented} naming an operator that TorchScript cannot express and its source location. `requires_grad`
// selects tensors that are written as requiring gradients; empty: none. `left_out`: parameters and buffers that no
// method uses and the file does not have.
void export_torchscript(const std::string& path, const ops::ObjectPtr& object,
                        const std::vector<TorchScriptMethod>& methods,
                        const std::function<bool(const Tensor&)>& requires_grad = {},
                        const std::set<const TensorImpl*>& left_out = {});

}  // namespace tensord::jit
