#pragma once

#include "core/jit/passes/pass.h"

namespace tensord::jit {

// The rewrites, one per file; each file says what it does and what it leaves to others.
// All keep what a run computes, and give back whether they changed the graph.
bool inline_calls(Graph& graph, PassContext& context);
bool freeze_attributes(Graph& graph, PassContext& context);
bool propagate_constants(Graph& graph, PassContext& context);
bool simplify_structure(Graph& graph, PassContext& context);
bool apply_peepholes(Graph& graph, PassContext& context);
bool eliminate_common_subexpressions(Graph& graph, PassContext& context);
bool eliminate_dead_code(Graph& graph, PassContext& context);

}  // namespace tensord::jit
