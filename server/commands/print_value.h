#pragma once

#include <iosfwd>

#include "core/ops/value.h"

namespace tensord::server {

// What a method returned, for people: a line for each tensor, with its place in tuples and dicts, dtype and shape, and
// its elements as JSON below, the first ones of many.
void print_value(std::ostream& out, const ops::Value& value);

}  // namespace tensord::server
