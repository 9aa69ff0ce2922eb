#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/ops/op.h"

namespace tensord::ops {

// What the gradient of one argument reads; bits as in Op::saved_inputs.
struct SavedFor {
  uint64_t inputs = 0, outputs = 0;
};

// By argument, for operators whose saves() says it: `.saves("self: other; other: self, result")`. Calls then keep
// only what the gradients that are asked for read. Empty for others: each gradient reads all that is saved.
std::span<const SavedFor> saved_for(const Op& op);

// Reads the text of saves() into the operator's record, and what it says by argument into an attribute of it.
// Before main, on one thread. False: it names what the operator does not have, or comes again.
bool set_saved(Op& op, std::string_view names);

}  // namespace tensord::ops
