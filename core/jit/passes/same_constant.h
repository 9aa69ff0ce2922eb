#pragma once

#include "core/jit/ir/graph.h"

namespace tensord::jit {

// Whether one constant may stand for the other: 1, 1.0 and True differ, as do 0.0 and -0.0, and a NaN is itself. Lists
// of numbers compare by what they hold; the rest of what has identity, by identity.
bool same_constant(const ops::Value& a, const ops::Value& b);
// The constant that a value is. Throws Error{kInternal} when it is none: whoever asks has to have looked.
const ops::Value& constant_of(const GraphValue* value);
// A list of few enough numbers to be compared item by item.
bool is_number_list(const ops::Value& value);

}  // namespace tensord::jit
