#pragma once

#include "core/jit/ir/graph.h"

namespace tensord::jit {

// Checks that a graph is well formed: every value is defined before its uses and in scope,
// use lists and links are exact, the arguments of operators agree with their schemas, and
// blocks have the inputs and outputs that their node asks for. Throws Error{kInternal} that
// shows the node. Linear in the size of the graph; recursion as deep as blocks are nested.
void verify(const Graph& graph);

// Whether a value of type `actual` may be given where a schema asks for `formal`: by
// subtyping or by one of TorchScript's implicit conversions that operators do themselves
// (number tensors to numbers, int to float, str to Device, one int for int[N]).
bool converts_implicitly(const ops::Argument& formal, const ops::TypePtr& actual);

}  // namespace tensord::jit
