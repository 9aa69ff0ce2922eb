#pragma once

#include <memory>
#include <vector>

#include "core/jit/ir/graph.h"
#include "core/tensor/tensor.h"

namespace tensord::jit {

// Puts `stand_in` in the place of every operator of its name in the block and those inside. It must outlive the graph.
void override_operator(Block* block, const ops::Op& stand_in);

// prim::requires_grad where these tensors are said to require one, though autograd knows nothing of them: parameters of
// a served module, of which a script may ask.
std::shared_ptr<const ops::Op> requires_grad_of(const std::vector<Tensor>& parameters);

}  // namespace tensord::jit
