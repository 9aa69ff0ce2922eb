#include "core/jit/runtime/plan/liveness.h"

#include <algorithm>

namespace tensord::jit {

Liveness::Liveness(const Graph& graph) { number(graph.block()); }

void Liveness::number(const Block* block) {
  int position = 0;
  for (Node* node = block->first(); node; node = node->next()) positions_[node] = position++;
  for (GraphValue* input : block->inputs()) last_uses_[input] = find_last_use(input, block);
  for (Node* node = block->first(); node; node = node->next()) {
    for (Block* inner : node->blocks()) number(inner);
    for (GraphValue* output : node->outputs()) last_uses_[output] = find_last_use(output, block);
  }
}

Liveness::LastUse Liveness::find_last_use(const GraphValue* value, const Block* home) const {
  LastUse last{home, nullptr, false};
  int last_position = -1;
  for (const GraphValue::Use& use : value->uses()) {
    const Block* block = use.block ? use.block : use.node->block();
    const Node* node = use.block ? nullptr : use.node;
    while (block && block != home) {
      node = block->owner();
      block = node ? node->block() : nullptr;
    }
    if (!block) continue;  // outside of `home`: in the other branch of an if
    last.is_used = true;
    if (!node) return {home, nullptr, true};
    const int position = positions_.at(node);
    if (position > last_position) {
      last_position = position;
      last.node = node;
    }
  }
  return last;
}

bool Liveness::dies_at(const GraphValue* value, const Node* node) const {
  const LastUse& last = last_uses_.at(value);
  return last.is_used && last.node == node && last.home == node->block();
}

bool Liveness::dies_at_end(const GraphValue* value, const Block* block) const {
  const LastUse& last = last_uses_.at(value);
  return last.is_used && !last.node && last.home == block;
}

bool Liveness::is_used_inside(const GraphValue* value, const Node* node) {
  return std::any_of(value->uses().begin(), value->uses().end(), [&](const GraphValue::Use& use) {
    const Block* block = use.block ? use.block : use.node->block();
    for (; block; block = block->owner() ? block->owner()->block() : nullptr) {
      if (block->owner() == node) return true;
    }
    return false;
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
