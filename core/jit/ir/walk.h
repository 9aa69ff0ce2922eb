#pragma once

#include "core/base/cancellation.h"
#include "core/jit/ir/graph.h"

namespace tensord::jit {

// Calls visit(node) for every node of the block and the blocks in it, inner ones first; visit may destroy the node and
// what is before it, and insert nodes. Ends by an error where the thread's work is given up (check_work_cancelled).
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
