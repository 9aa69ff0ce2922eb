#pragma once

#include "core/jit/ir/graph.h"

namespace tensord::jit {

// The type of the graph's result. A dict that has the same str keys in the same order in every run becomes a
// NamedTuple, because the dict type does not give the keys. Other dicts stay dicts.
ops::TypePtr result_type_with_keys(const Graph& graph);

}  // namespace tensord::jit
