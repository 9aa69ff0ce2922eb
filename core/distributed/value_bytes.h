#pragma once

#include <string>
#include <string_view>

#include "core/ops/value.h"

namespace tensord::distributed {

// A value as bytes for other ranks: None, bool, int, float, text, tensors (row-major, on the CPU), lists, tuples,
// dicts. Throws Error{kUnimplemented} naming another kind. Processes of one job run the same version, so the bytes have
// none.
std::string bytes_of_value(const ops::Value& value);
// Throws Error{kDataLoss} for bytes that are no value.
ops::Value value_of_bytes(std::string_view bytes);

}  // namespace tensord::distributed
