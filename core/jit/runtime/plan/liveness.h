#pragma once

#include <unordered_map>
#include <vector>

#include "core/jit/ir/graph.h"

namespace tensord::jit {

// The last use of each value of a graph, block by block. Queried while a program is built, in the order of
// instructions.
class Liveness {
 public:
  explicit Liveness(const Graph& graph);

  // Whether `value` is dead after `node`, within the node's own block.
  bool dies_at(const GraphValue* value, const Node* node) const;
  // Whether the block's outputs are the last use of `value`.
  bool dies_at_end(const GraphValue* value, const Block* block) const;
  // Whether any block inside `node` uses `value`.
  bool is_used_inside(const GraphValue* value, const Node* node) const;
  // Outer values used in the blocks of `node` that are dead after it.
  std::vector<GraphValue*> captured_dying_at(const Node* node) const;
  // From now on `value` belongs to `branch`, a block that runs at most once and after which the value is dead. Returns
  // whether the branch uses it.
  bool enter_branch(GraphValue* value, const Block* branch);

 private:
  struct LastUse {
    const Block* home = nullptr;  // the block after whose last use it is dead
    const Node* node = nullptr;   // in that block; null for the block's outputs
    bool is_used = false;
  };
  struct Span {
    int begin = 0, end = 0;  // pre-order numbers of nodes; a node's range includes those in its blocks
  };
  void number(const Block* block);
  void find_last_uses(const Block* block);
  LastUse find_last_use(const GraphValue* value, const Block* home) const;
  void collect_captured(const Block* block, const Node* node, std::vector<GraphValue*>& out) const;

  int next_ = 0;
  std::unordered_map<const Node*, Span> nodes_;
  std::unordered_map<const Block*, Span> blocks_;
  std::unordered_map<const GraphValue*, LastUse> last_uses_;
};

}  // namespace tensord::jit
