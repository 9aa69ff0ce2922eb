#pragma once

#include "core/jit/passes/pass.h"

namespace tensord::jit {

// The rewrites. Each file documents its pass and what it leaves to others. All passes preserve the results of a run and
// return whether they changed the graph.
bool inline_calls(Graph& graph, PassContext& context);
bool freeze_attributes(Graph& graph, PassContext& context);
bool propagate_constants(Graph& graph, PassContext& context);
bool simplify_structure(Graph& graph, PassContext& context);
bool apply_peepholes(Graph& graph, PassContext& context);
bool eliminate_common_subexpressions(Graph& graph, PassContext& context);
bool eliminate_dead_code(Graph& graph, PassContext& context);
bool expand_layers(Graph& graph, PassContext& context);
// The passes over packed operators, in this order.
bool prepack_weights(Graph& graph, PassContext& context);
bool fold_conversions(Graph& graph, PassContext& context);  // const_prop.cpp
bool fold_batch_norm(Graph& graph, PassContext& context);
bool fuse_epilogue(Graph& graph, PassContext& context);
bool use_channels_last(Graph& graph, PassContext& context);
// The same; gives back how many values, uses and inputs it looked at, which grows as the graph does.
size_t channels_last_visits(Graph& graph, PassContext& context);
// For one input signature, where GraphValue::known() says what is known.
bool propagate_shapes(Graph& graph, PassContext& context);
bool unroll_loops(Graph& graph, PassContext& context);
bool collect_lists(Graph& graph, PassContext& context);
bool functionalize(Graph& graph, PassContext& context);
bool remove_transposes(Graph& graph, PassContext& context);
bool fuse_attention(Graph& graph, PassContext& context);
bool group_heads(Graph& graph, PassContext& context);
bool fuse_patterns(Graph& graph, PassContext& context);
bool fuse_pointwise(Graph& graph, PassContext& context);
bool plan_segments(Graph& graph, PassContext& context);

}  // namespace tensord::jit
