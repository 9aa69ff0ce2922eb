#pragma once

#include "core/base/cancellation.h"
#include "core/jit/ir/graph.h"

namespace tensord::jit {

// Calls visit(node) for every node of the block and its nested blocks, inner nodes first. `visit` may destroy the node
// and earlier ones, and insert nodes. Throws if the thread's work is cancelled (check_work_cancelled).
template <class Visit>
void for_each_node(Block* block, Visit&& visit) {
  for (Node* node = block->first(); node != nullptr;) {
    for (Block* inner : node->blocks()) for_each_node(inner, visit);
    Node* const next = node->next();
    check_work_cancelled();
    visit(node);
    node = next;
  }
}

template <class Visit>
void for_each_node(const Block& block, Visit&& visit) {
  for (const Node* node = block.first(); node != nullptr; node = node->next()) {
    for (const Block* inner : node->blocks()) for_each_node(*inner, visit);
    check_work_cancelled();
    visit(*node);
  }
}

}  // namespace tensord::jit
