#pragma once

#include "core/jit/ir/graph.h"

namespace tensord::jit {

// Puts `stand_in` in the place of every operator of its name in the block and those inside. It must outlive the graph.
void use_stand_in(Block* block, const ops::Op& stand_in);

}  // namespace tensord::jit
