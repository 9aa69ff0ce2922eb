#pragma once

#include "core/jit/ir/graph.h"

namespace tensord::jit {

// Whether one constant may replace the other. 1, 1.0 and True differ, as do 0.0 and -0.0; a NaN equals itself. Lists of
// numbers compare by their items, other values with an identity by identity.
bool same_constant(const ops::Value& a, const ops::Value& b);
// The constant of a value. Throws Error{kInternal} if it is not a constant, because callers must check first.
const ops::Value& constant_of(const GraphValue* value);
// A list of numbers that is short enough to compare item by item.
bool is_number_list(const ops::Value& value);

}  // namespace tensord::jit
