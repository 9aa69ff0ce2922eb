#pragma once

#include "core/jit/ir/graph.h"

namespace tensord::jit {

// Calls visit(node) for every node of the block and the blocks in it, inner ones first; visit may destroy the node and
// what is before it, and insert nodes.
template <class Visit>
void for_each_node(Block* block, Visit&& visit) {
  for (Node* node = block->first(); node != nullptr;) {
    for (Block* inner : node->blocks()) for_each_node(inner, visit);
    Node* const next = node->next();
    visit(node);
    node = next;
  }
}

template <class Visit>
void for_each_node(const Block& block, Visit&& visit) {
  for (const Node* node = block.first(); node != nullptr; node = node->next()) {
    for (const Block* inner : node->blocks()) for_each_node(*inner, visit);
    visit(*node);
  }
}

}  // namespace tensord::jit
