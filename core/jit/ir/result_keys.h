#pragma once

#include <vector>

#include "core/jit/ir/graph.h"

namespace tensord::jit {

// The type of the graph's result. A dict that has the same str keys in the same order in every run becomes a
// NamedTuple, because the dict type does not give the keys. Other dicts stay dicts.
ops::TypePtr result_type_with_keys(const Graph& graph);

// The values inside of that result, in the order of the type's members, without its tuples and dicts.
std::vector<const GraphValue*> result_values(const Graph& graph);

}  // namespace tensord::jit
