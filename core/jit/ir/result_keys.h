#pragma once

#include "core/jit/ir/graph.h"

namespace tensord::jit {

// The type of what a graph gives back, with a NamedTuple for each dict that it makes of the same str keys, in the same
// order, in every run: what its type alone does not tell. Other dicts stay dicts.
ops::TypePtr result_type_with_keys(const Graph& graph);

}  // namespace tensord::jit
