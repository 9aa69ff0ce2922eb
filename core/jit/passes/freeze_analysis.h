#pragma once

#include <set>
#include <span>
#include <string>

#include "core/jit/passes/pass.h"

namespace tensord::jit {

// The attributes below `self` that running any of the methods may change: assigned, or
// written in place through any alias (a tensor that shares its storage, a list, an object
// reached in another way). Everything else is constant while the module is loaded.
//
// `methods` are the graphs of all methods that can be called from outside, as the front end
// made them or inlined; they are not changed. Numbers that no method assigns (`training`)
// are taken as constants first, so what only happens under them does not count.
//
// The result has canonical paths (see AttributePaths) and is what
// PassContext::changing_attributes wants. Where code is unknown, everything changes.
//
// Paths in `changing` may be changed from outside too; they are part of the result.
//
// Of the context, the functions, the object and where failures are counted are used. A pass that fails leaves more
// attributes changing (see run_pipeline). Throws what is wrong with code that is compiled on the way.
std::set<std::string> find_changing_attributes(const PassContext& context, std::span<const Graph* const> methods,
                                               const std::set<std::string>& changing = {},
                                               const PassOptions& options = {});

// The attributes that training may change: tensors, what may hold some, and `training`.
std::set<std::string> trained_attributes(const ops::ObjectPtr& self);

}  // namespace tensord::jit
