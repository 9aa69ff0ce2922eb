#pragma once

#include <string>
#include <string_view>

#include "core/ops/value.h"

namespace tensord::distributed {

// Serializes a value for other ranks: None, bool, int, float, string, tensors (row-major, on the CPU), lists, tuples,
// dicts. Throws Error{kUnimplemented} naming any other type. All processes of a job run the same version, so the format
// has no version.
std::string bytes_of_value(const ops::Value& value);
// Throws Error{kDataLoss} for malformed bytes.
ops::Value value_of_bytes(std::string_view bytes);

}  // namespace tensord::distributed
