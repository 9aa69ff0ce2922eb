#pragma once

#include "core/jit/ir/graph.h"

namespace tensord::jit {

// Checks that a graph is well formed: every value is defined before its uses and in scope, use lists and links are
// exact, the arguments of operators match their schemas, and blocks have the inputs and outputs that their node
// requires. Throws Error{kInternal} that shows the node. Linear in the size of the graph; the recursion is as deep as
// the nesting of blocks.
void verify(const Graph& graph);

// Whether a schema's `formal` accepts a value of type `actual`, by subtyping or by an implicit conversion that
// operators do themselves (number tensors to numbers, int to float, str to Device, one int for int[N]).
bool converts_implicitly(const ops::Argument& formal, const ops::TypePtr& actual);

}  // namespace tensord::jit
