#pragma once

#include "core/ops/op.h"

namespace tensord::ops {

// An operator's attribute: its result has as many dimensions as its first argument.
struct KeepsRank {};
// True if the operator has the attribute, is pointwise with one tensor, or is pointwise and writes it in place.
bool keeps_rank(const Op& op);

}  // namespace tensord::ops
