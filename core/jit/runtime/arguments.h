#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/ops/schema.h"
#include "core/ops/value.h"

namespace tensord::jit {

// Converts a value to a declared type: lists and dicts take the declared element types, ints become floats, tuples
// become lists. Containers that already have the type are passed on unchanged. Throws Error{kInvalidArgument} that
// starts with `what` ("forward: argument 'x'").
ops::Value coerce(const ops::Value& value, const ops::TypePtr& type, const std::string& what);

// Appends the coerced arguments of a call to `out`, by position, with defaults for missing ones. `schema` has no self.
// Throws Error{kInvalidArgument} naming method and argument.
void bind_arguments(const ops::Schema& schema, std::span<const ops::Value> arguments, std::vector<ops::Value>& out);

}  // namespace tensord::jit
