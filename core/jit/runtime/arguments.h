#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/ops/schema.h"
#include "core/ops/value.h"

namespace tensord::jit {

// Makes a value from outside fit a declared type: lists and dicts take the declared element
// types, ints become floats, tuples become lists where a list is asked for. Containers that
// already fit are passed on as they are. Throws Error{kInvalidArgument} that starts with
// `what` ("forward: argument 'x'").
ops::Value coerce(const ops::Value& value, const ops::TypePtr& type, const std::string& what);

// Arguments of a call by position, coerced, with defaults for the missing ones; appended to
// `out`. `schema` has no self. Throws Error{kInvalidArgument} naming method and argument.
void bind_arguments(const ops::Schema& schema, std::span<const ops::Value> arguments, std::vector<ops::Value>& out);

}  // namespace tensord::jit
