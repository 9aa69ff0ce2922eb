#pragma once

#include <map>
#include <span>
#include <string>

#include "core/jit/ir/graph.h"
#include "core/ops/schema.h"

namespace tensord::jit {

// What the type variables of a schema stand for at one call.
using TypeBindings = std::map<std::string, ops::TypePtr>;

// Whether a value of type `actual` fits `formal`, which may contain type variables; binds
// the ones it meets first and widens them to the common supertype of later ones.
bool match_type(const ops::Type& formal, const ops::TypePtr& actual, TypeBindings& bindings);
// `formal` with its bound variables replaced; unbound ones stay.
ops::TypePtr substitute(const ops::TypePtr& formal, const TypeBindings& bindings);

// Whether a value of the type may be a tensor, or a list, dict or tuple with one in it.
bool may_hold_tensor(const ops::Type& type);

}  // namespace tensord::jit
