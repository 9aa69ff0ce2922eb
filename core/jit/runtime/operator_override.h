#pragma once

#include <memory>
#include <vector>

#include "core/jit/ir/graph.h"
#include "core/tensor/tensor.h"

namespace tensord::jit {

// Replaces every operator of the same name in the block and nested blocks by `stand_in`, which must outlive the graph.
void override_operator(Block* block, const ops::Op& stand_in);

// An override of prim::requires_grad that returns true for these tensors, although autograd does not know them:
// parameters of a served module, which a script may query.
std::shared_ptr<const ops::Op> requires_grad_of(const std::vector<Tensor>& parameters);

}  // namespace tensord::jit
