// dce: dead code elimination. Removes nodes whose results are not used, writes to memory that is not read, and unused
// outputs of If and Loop with their carried values. Visible effects (prints, raises, random draws, writes to attributes
// or inputs) stay.
#include <unordered_map>
#include <unordered_set>

#include "core/jit/ir/alias.h"
#include "core/jit/ir/walk.h"
#include "core/jit/passes/passes.h"

namespace tensord::jit {

namespace {

// Marks the needed nodes, backwards from the effects and the graph's outputs.
class Marker {
 public:
  explicit Marker(const Graph& graph) : alias_(graph) {
    roots(*graph.block());
    for (const GraphValue* output : graph.outputs()) need(output);
    propagate();
  }

  bool is_live(const Node* node) const { return nodes_.contains(node); }
  bool is_live(const GraphValue* value) const { return values_.contains(value); }

 private:
  void roots(const Block& block) {
    for_each_node(block, [this](const Node& node) {
      if (node.blocks().empty() && alias_.has_side_effects(&node) && !only_looks(node)) need(&node);
    });
  }

  // An operator with a result but without arguments queries a state ("is_grad_enabled").
  static bool only_looks(const Node& node) {
    const ops::Op* op = node.op();
    return op && !op->is_random && op->schema.arguments.empty() && !op->schema.returns.empty();
  }

  void need(const GraphValue* value) {
    if (values_.insert(value).second) value_work_.push_back(value);
  }
  void need(const Node* node) {
    if (nodes_.insert(node).second) node_work_.push_back(node);
  }

  void propagate() {
    while (!value_work_.empty() || !node_work_.empty()) {
      if (!node_work_.empty()) {
        const Node* node = node_work_.back();
        node_work_.pop_back();
        mark_node(*node);
      } else {
        const GraphValue* value = value_work_.back();
        value_work_.pop_back();
        mark_value(*value);
      }
    }
  }

  // A needed node needs its inputs and the nodes around it.
  void mark_node(const Node& node) {
    if (const Node* owner = node.block()->owner()) need(owner);
    switch (node.kind()) {
      case NodeKind::kIf: return need(node.input());
      case NodeKind::kLoop:
        need(node.input(0));
        need(node.input(1));
        return need(node.blocks()[0]->outputs()[0]);
      case NodeKind::kFork:
      case NodeKind::kPlan:
        for (const GraphValue* output : node.blocks()[0]->outputs()) need(output);
        break;
      default: break;
    }
    for (const GraphValue* input : node.inputs()) need(input);
  }

  void mark_value(const GraphValue& value) {
    mark_writers(value);
    if (const Node* node = value.node()) {
      need(node);
      if (node->kind() == NodeKind::kIf) {
        for (const Block* block : node->blocks()) need(block->outputs()[value.index()]);
      } else if (node->kind() == NodeKind::kLoop) {
        carried(*node, value.index());
      }
    } else if (const Node* owner = value.block()->owner()) {
      need(owner);
      if (owner->kind() == NodeKind::kLoop && value.index() > 0) carried(*owner, value.index() - 1);
    }
  }

  void carried(const Node& loop, size_t i) {
    need(loop.input(i + 2));
    need(loop.blocks()[0]->outputs()[i + 1]);
    need(loop.blocks()[0]->inputs()[i + 1]);
  }

  // A node that reads memory needs all writes to it.
  void mark_writers(const GraphValue& value) {
    for (int location : alias_.reachable(&value)) {
      if (!locations_.insert(location).second) continue;
      for (const Node* writer : alias_.writers(location)) need(writer);
    }
  }

  AliasAnalysis alias_;
  std::unordered_set<const Node*> nodes_;
  std::unordered_set<const GraphValue*> values_;
  std::unordered_set<int> locations_;
  std::vector<const Node*> node_work_;
  std::vector<const GraphValue*> value_work_;
};

class Sweeper {
 public:
  Sweeper(Graph& graph, PassContext& context) : marker_(graph), context_(context) {}

  // Backwards, so that users are removed before the nodes they use.
  bool sweep(Block* block) {
    bool changed = false;
    for (Node* node = block->last(); node;) {
      Node* previous = node->previous();
      if (!marker_.is_live(node)) {
        // The users are dead too, but a limit on changes may have kept them.
        if (!node->has_output_uses() && context_.take_change()) {
          node->destroy();
          changed = true;
        }
      } else if (!node->blocks().empty()) {
        changed |= sweep_blocks(node);
      }
      node = previous;
    }
    return changed;
  }

 private:
  bool sweep_blocks(Node* node) {
    bool changed = false;
    bool is_if = node->kind() == NodeKind::kIf;
    // A carried value is removed together with the nodes of the body that compute it, so a limit on changes must not
    // interrupt this.
    bool is_loop = node->kind() == NodeKind::kLoop &&
                   context_.remaining_changes >= static_cast<int64_t>(node->graph()->node_count());
    std::vector<size_t> dead;
    for (size_t i = node->outputs().size(); i > 0 && (is_if || is_loop); --i) {
      bool is_live =
          marker_.is_live(node->output(i - 1)) || (is_loop && marker_.is_live(node->blocks()[0]->inputs()[i]));
      if (is_live || node->output(i - 1)->has_uses() || !context_.take_change()) continue;
      dead.push_back(i - 1);
      for (Block* block : node->blocks()) block->remove_output(i - 1 + (is_loop ? 1 : 0));
    }
    for (Block* block : node->blocks()) changed |= sweep(block);
    for (size_t i : dead) {
      if (is_loop) {
        Block* body = node->blocks()[0];
        body->remove_input(i + 1);
        node->remove_input(i + 2);
      }
      node->remove_output(i);
      changed = true;
    }
    return changed;
  }

  Marker marker_;
  PassContext& context_;
};

}  // namespace

bool eliminate_dead_code(Graph& graph, PassContext& context) { return Sweeper(graph, context).sweep(graph.block()); }

}  // namespace tensord::jit
