// unroll: replaces a loop with a small constant number of iterations by copies of its body, so that every copy can be
// simplified and planned separately.
#include "core/jit/ir/graph_builder.h"
#include "core/jit/ir/walk.h"
#include "core/jit/passes/passes.h"
#include "core/jit/passes/same_constant.h"

namespace tensord::jit {

using ops::Value;

namespace {

// The limit on copies times nodes; a larger graph would be slow to process.
constexpr int64_t kMaxUnrolledNodes = 8192;
constexpr int64_t kMaxTurns = 1024;

bool is_true(const GraphValue* value) {
  const Value* constant = value->constant();
  return constant && constant->is_bool() && constant->to_bool();
}

int64_t count_nodes(const Block& block) {
  int64_t count = 0;
  for_each_node(block, [&](const Node& node) { count += node.kind() != NodeKind::kConstant; });
  return count;
}

bool is_unrollable(const Node& loop) {
  const Value* trips = loop.input(0)->constant();
  if (!trips || !trips->is_int() || !is_true(loop.input(1)) || !is_true(loop.blocks()[0]->outputs()[0])) return false;
  return trips->to_int() <= kMaxTurns && trips->to_int() * count_nodes(*loop.blocks()[0]) <= kMaxUnrolledNodes;
}

void unroll(Graph& graph, Node* loop) {
  const Block& body = *loop->blocks()[0];
  std::vector<GraphValue*> carried(loop->inputs().begin() + 2, loop->inputs().end());
  const int64_t turns = constant_of(loop->input(0)).to_int();
  for (int64_t turn = 0; turn < turns; ++turn) {
    std::vector<GraphValue*> arguments{GraphBuilder(loop).constant(Value(turn))};
    arguments.insert(arguments.end(), carried.begin(), carried.end());
    const std::vector<GraphValue*> results = graph.inline_block(body, arguments, loop->block(), loop);
    carried.assign(results.begin() + 1, results.end());
  }
  for (size_t i = 0; i < carried.size(); ++i) loop->output(i)->replace_all_uses_with(carried[i]);
  loop->destroy();
}

bool visit(Graph& graph, PassContext& context, Block* block) {
  bool changed = false;
  for (Node* node = block->first(); node;) {
    Node* next = node->next();
    // Inner loops first: they may be what makes the outer loop large.
    for (Block* inner : node->blocks()) changed |= visit(graph, context, inner);
    if (node->kind() == NodeKind::kLoop && is_unrollable(*node) && context.take_change()) {
      unroll(graph, node);
      changed = true;
    }
    node = next;
  }
  return changed;
}

}  // namespace

bool unroll_loops(Graph& graph, PassContext& context) { return visit(graph, context, graph.block()); }

}  // namespace tensord::jit
