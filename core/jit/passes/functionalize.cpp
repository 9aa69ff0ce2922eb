// functionalize: replaces an in-place operator by its functional form if no other value observes the memory, so that
// fusion and the memory plan see plain values. relu_(x) becomes relu(x) if this block makes x, no view of x is read
// later, and x is not returned under another name.
#include <unordered_map>
#include <unordered_set>

#include "core/jit/ir/alias.h"
#include "core/jit/ir/graph_builder.h"
#include "core/jit/ir/walk.h"
#include "core/jit/passes/packing.h"
#include "core/jit/passes/passes.h"
#include "core/ops/run.h"

namespace tensord::jit {

namespace {

class Functionalizer {
 public:
  Functionalizer(Graph& graph, PassContext& context) : graph_(graph), context_(context), alias_(graph) {
    collect(graph.block());
  }

  bool run() {
    bool changed = false;
    for_each_node(graph_.block(), [&](Node* node) {
      if (!is_candidate(*node) || !context_.take_change()) return;
      rewrite(node);
      changed = true;
    });
    return changed;
  }

 private:
  void collect(const Block* block) {
    for (const GraphValue* input : block->inputs()) by_location_[alias_.location(input)].push_back(input);
    for (const Node* node = block->first(); node; node = node->next()) {
      for (const GraphValue* output : node->outputs()) by_location_[alias_.location(output)].push_back(output);
      for (const Block* inner : node->blocks()) collect(inner);
    }
  }

  // The results of earlier in-place operators are the written value itself; otherwise one value must remain.
  bool is_candidate(const Node& node) {
    if (!is_inplace(node) || !functional_op(node)->is_pure) return false;
    const GraphValue* self = node.input();
    const int location = alias_.location(self);
    if (location < 0 || done_.contains(location) || location == alias_.wildcard() || alias_.is_external(location))
      return false;
    if (self->block() != node.block() || !self->node()) return false;
    if (self->known().is_none() || !keeps_dtype(node)) return false;
    for (const GraphValue* other : by_location_[location]) {
      if (other != self && !is_same_memory(other, self)) return false;
    }
    return !is_held(self) && !is_read_by_another_name(node, by_location_[location]);
  }

  // Whether an earlier name of the memory is read or kept later. Only the uses of the node's own input are redirected
  // to the new value.
  static bool is_read_by_another_name(const Node& node, const std::vector<const GraphValue*>& names) {
    if (names.size() <= 2) return false;  // its input and its result
    std::unordered_set<const Node*> later{&node};
    for (const Node* after = node.next(); after; after = after->next()) later.insert(after);
    for (const GraphValue* name : names) {
      if (name == node.input() || (name->node() && later.contains(name->node()))) continue;
      if (is_held(name)) return true;
      for (const GraphValue::Use& use : name->uses()) {
        if (use.node != &node && later.contains(use.node)) return true;
      }
    }
    return false;
  }

  static bool is_inplace(const Node& node) {
    const ops::Op* functional = functional_op(node);
    return functional && functional != node.op();
  }

  // In-place operators convert the result to the dtype and shape of the target; the functional form must give the same
  // ones.
  static bool keeps_dtype(const Node& node) {
    const ops::Op* functional = functional_op(node);
    std::vector<ops::Value> arguments;
    for (const GraphValue* input : node.inputs()) {
      const bool is_none = input->constant() && input->constant()->is_none();
      if (input->known().is_none() && !is_none) return false;
      arguments.push_back(input->known());
    }
    try {
      const std::vector<ops::Value> results = ops::infer(*functional, arguments);
      if (results.size() != 1) return false;
      const Tensor &before = node.input()->known().to_tensor(), &after = results[0].to_tensor();
      return before.dtype() == after.dtype() && before.sizes() == after.sizes() && before.strides() == after.strides();
    } catch (const Error&) {
      return false;
    }
  }

  // Whether one of `value` and `self` comes from the other through in-place operators alone.
  static bool is_same_memory(const GraphValue* value, const GraphValue* self) {
    const auto origin = [](const GraphValue* v) {
      while (v->node() && is_inplace(*v->node())) v = v->node()->input();
      return v;
    };
    return origin(value) == origin(self);
  }

  // Containers and blocks would keep the old value.
  static bool is_held(const GraphValue* self) {
    for (const GraphValue::Use& use : self->uses()) {
      if (use.block || !use.node->op() || use.node->block() != self->block()) return true;
    }
    return false;
  }

  void rewrite(Node* node) {
    done_.insert(alias_.location(node->input()));
    Node* functional = GraphBuilder(node).call(*functional_op(*node), node->inputs());
    GraphBuilder::replace_value(functional->output(), node);
    // From here on, readers of the written value read the new one.
    std::unordered_set<const Node*> later;
    for (const Node* after = node->next(); after; after = after->next()) later.insert(after);
    const std::vector<GraphValue::Use> uses = node->input()->uses();
    for (const GraphValue::Use& use : uses) {
      if (use.node && later.contains(use.node)) use.node->replace_input(use.index, functional->output());
    }
    functional->output()->set_known(node->input()->known());
    node->destroy();
  }

  Graph& graph_;
  PassContext& context_;
  AliasAnalysis alias_;
  std::unordered_map<int, std::vector<const GraphValue*>> by_location_;
  std::unordered_set<int> done_;  // locations rewritten in this run; the next run analyzes them again
};

}  // namespace

bool functionalize(Graph& graph, PassContext& context) { return Functionalizer(graph, context).run(); }

}  // namespace tensord::jit
