#pragma once

#include <iosfwd>

#include "core/ops/value.h"

namespace tensord::server {

// Prints a method's result: for each tensor one line with its path in tuples and dicts, its dtype and its shape, then
// its elements as JSON, shortened if there are many.
void print_value(std::ostream& out, const ops::Value& value);

}  // namespace tensord::server
