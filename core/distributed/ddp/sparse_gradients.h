#pragma once

#include <string>

#include "core/distributed/group/process_group.h"
#include "core/ops/sparse.h"

namespace tensord::distributed {

// The sum of all ranks' sparse gradients of a table, each multiplied by 1/divisor: a coalesced COO tensor over its
// rows. `own` is null for a rank that has none; ranks may have different rows. Called in the same order on all ranks;
// blocks.
ops::SparsePtr reduce_sparse(ProcessGroup& group, const Tensor& table, const ops::SparsePtr& own, int divisor);

// Throws Error that names the parameter where the gradient is none of rows of the host's memory.
void check_sparse_gradient(const std::string& name, const Tensor& gradient);

}  // namespace tensord::distributed
