#pragma once

#include "core/ops/op.h"

namespace tensord::kernels {

// The gradient of a table of `rows` rows as a COO tensor, not coalesced: one row of `grad` [index sizes …, width] for
// each index that is not `padding`. Throws Error{kOutOfRange} for an index that is not a row.
ops::Value sparse_table_gradient(const Tensor& grad, const Tensor& indices, int64_t rows, int64_t padding);

}  // namespace tensord::kernels
