#pragma once

#include "core/ops/op.h"

namespace tensord::ops {

// An operator's attribute: its result has as many dimensions as its first argument.
struct KeepsRank {};
// True where the attribute is, for pointwise operators of one tensor, and for pointwise ones that write it in place.
bool keeps_rank(const Op& op);

}  // namespace tensord::ops
