#pragma once

#include <string>

#include "core/distributed/group/process_group.h"
#include "core/ops/sparse.h"

namespace tensord::distributed {

// Returns the sum of all ranks' sparse gradients of a table, each multiplied by 1/divisor: a coalesced COO tensor over
// its rows. `own` is null for a rank without one; ranks may have different rows. Call it in the same order on all
// ranks. It blocks.
ops::SparsePtr reduce_sparse(ProcessGroup& group, const Tensor& table, const ops::SparsePtr& own, int divisor);

// Throws Error that names the parameter unless the gradient is a row-sparse tensor in host memory.
void check_sparse_gradient(const std::string& name, const Tensor& gradient);

}  // namespace tensord::distributed
