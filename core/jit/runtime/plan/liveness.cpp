#include "core/jit/runtime/plan/liveness.h"

#include <algorithm>

#include "core/base/cancellation.h"

namespace tensord::jit {

Liveness::Liveness(const Graph& graph) {
  number(graph.block());
  find_last_uses(graph.block());
}

void Liveness::number(const Block* block) {
  Span& span = blocks_[block];
  span.begin = next_;
  for (Node* node = block->first(); node; node = node->next()) {
    check_work_cancelled();
    const int begin = next_++;
    for (Block* inner : node->blocks()) number(inner);
    nodes_[node] = {begin, next_};
  }
  blocks_[block].end = next_;
}

void Liveness::find_last_uses(const Block* block) {
  for (GraphValue* input : block->inputs()) last_uses_[input] = find_last_use(input, block);
  for (Node* node = block->first(); node; node = node->next()) {
    check_work_cancelled();
    for (Block* inner : node->blocks()) find_last_uses(inner);
    for (GraphValue* output : node->outputs()) last_uses_[output] = find_last_use(output, block);
  }
}

Liveness::LastUse Liveness::find_last_use(const GraphValue* value, const Block* home) const {
  const Span span = blocks_.at(home);
  const Node* latest = nullptr;
  int latest_order = -1;
  for (const GraphValue::Use& use : value->uses()) {
    if (use.block == home) return {home, nullptr, true};
    const Node* node = use.block ? use.block->owner() : use.node;
    const int order = node ? nodes_.at(node).begin : -1;
    // Uses outside of `home` are in the other branch of an if.
    if (order < span.begin || order >= span.end || order <= latest_order) continue;
    latest = node;
    latest_order = order;
  }
  if (!latest) return {home, nullptr, false};
  while (latest->block() != home) latest = latest->block()->owner();
  return {home, latest, true};
}

bool Liveness::dies_at(const GraphValue* value, const Node* node) const {
  const LastUse& last = last_uses_.at(value);
  return last.is_used && last.node == node && last.home == node->block();
}

bool Liveness::dies_at_end(const GraphValue* value, const Block* block) const {
  const LastUse& last = last_uses_.at(value);
  return last.is_used && !last.node && last.home == block;
}

bool Liveness::is_used_inside(const GraphValue* value, const Node* node) const {
  const Span span = nodes_.at(node);
  return std::any_of(value->uses().begin(), value->uses().end(), [&](const GraphValue::Use& use) {
    if (use.block && use.block->owner() == node) return true;
    const Node* user = use.block ? use.block->owner() : use.node;
    const int order = user ? nodes_.at(user).begin : -1;
    return order > span.begin && order < span.end;
  });
}

std::vector<GraphValue*> Liveness::captured_dying_at(const Node* node) const {
  std::vector<GraphValue*> out;
  for (Block* block : node->blocks()) collect_captured(block, node, out);
  return out;
}

void Liveness::collect_captured(const Block* block, const Node* node, std::vector<GraphValue*>& out) const {
  auto add = [&](GraphValue* value) {
    const auto found = last_uses_.find(value);
    if (found == last_uses_.end() || !dies_at(value, node)) return;
    if (std::find(out.begin(), out.end(), value) == out.end()) out.push_back(value);
  };
  for (Node* inner = block->first(); inner; inner = inner->next()) {
    for (GraphValue* input : inner->inputs()) add(input);
    for (Block* nested : inner->blocks()) collect_captured(nested, node, out);
  }
  for (GraphValue* output : block->outputs()) add(output);
}

bool Liveness::enter_branch(GraphValue* value, const Block* branch) {
  LastUse& last = last_uses_[value];
  last = find_last_use(value, branch);
  return last.is_used;
}

}  // namespace tensord::jit
