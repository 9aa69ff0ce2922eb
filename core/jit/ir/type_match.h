#pragma once

#include <map>
#include <span>
#include <string>

#include "core/jit/ir/graph.h"
#include "core/ops/schema.h"

namespace tensord::jit {

// The types of a schema's type variables in one call.
using TypeBindings = std::map<std::string, ops::TypePtr>;

// Whether a value of type `actual` matches `formal`, which may contain type variables. The first match binds a
// variable; later ones widen it to the common supertype.
bool match_type(const ops::Type& formal, const ops::TypePtr& actual, TypeBindings& bindings);
// `formal` with its bound variables replaced; unbound variables stay.
ops::TypePtr substitute(const ops::TypePtr& formal, const TypeBindings& bindings);

// Whether a value of the type may be or contain a tensor.
bool may_hold_tensor(const ops::Type& type);

}  // namespace tensord::jit
