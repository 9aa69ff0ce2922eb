#pragma once

#include <set>
#include <span>
#include <string>

#include "core/jit/passes/pass.h"

namespace tensord::jit {

// Finds the attributes below `self` that any of the methods may change: by assignment, or by a write through an alias
// (a tensor that shares the storage, a list, another path to the object). All other attributes are constant while the
// module is loaded.
//
// `methods` are the graphs of all methods that can be called from outside, as the frontend made them or inlined; they
// are not modified. Numbers that no method assigns (`training`) are folded first, so code in branches that they exclude
// does not count.
//
// The result has canonical paths (see AttributePaths), as PassContext::changing_attributes expects. If some code is
// unknown, all attributes are changing.
//
// Paths in `changing` may also be changed from outside; they are part of the result.
//
// It uses the functions, the object and the failure counter of the context. A pass that fails leaves more attributes
// changing (see run_pipeline). Throws the errors of code that it has to compile.
std::set<std::string> find_changing_attributes(const PassContext& context, std::span<const Graph* const> methods,
                                               const std::set<std::string>& changing = {},
                                               const PassOptions& options = {});

// The attributes that training may change: tensors, containers of tensors, and `training`.
std::set<std::string> trained_attributes(const ops::ObjectPtr& self);

}  // namespace tensord::jit
