#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/ops/op.h"

namespace tensord::ops {

// The values that the gradient of one argument reads; bits as in Op::saved_inputs.
struct SavedFor {
  uint64_t inputs = 0, outputs = 0;
};

// By argument, for operators whose saves() lists them: `.saves("self: other; other: self, result")`. A call then keeps
// only the values that the needed gradients read. Empty for others: each gradient reads all saved values.
std::span<const SavedFor> saved_for(const Op& op);

// Parses the string of saves() into the operator's record, and its list by argument into an attribute. Called before
// main, on one thread. Returns false if it names something that the operator does not have, or names it twice.
bool set_saved(Op& op, std::string_view names);

}  // namespace tensord::ops
