// channels_last: packed convolutions return their results in memory order N, spatial…, C. Operators that keep the
// memory order (`keeps_layout`) pass it on, so a chain of layers never reorders memory. Every other user, and the
// graph's outputs, gets a contiguous copy made just before the use. Where such a copy could differ from the original (a
// later write to the memory), the convolutions that the value comes from keep their order.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/jit/ir/alias.h"
#include "core/jit/passes/packing.h"
#include "core/jit/passes/passes.h"
#include "core/ops/registry.h"
#include "core/ops/run.h"

namespace tensord::jit {

namespace {

using Use = GraphValue::Use;

bool keeps_layout(const Node& node) {
  const ops::Op* op = functional_op(node);
  return op && op->keeps_layout;
}

// Whether the node only stores tensors in the list that is its argument `index`.
bool stores_into(const Node& node, size_t index) {
  const ops::Op* op = node.op();
  if (!op || index >= op->schema.arguments.size() || !op->schema.arguments[index].alias.is_write) return false;
  return std::none_of(node.outputs().begin(), node.outputs().end(),
                      [](const GraphValue* output) { return output->has_uses(); });
}

// A list of tensors that only operators that keep the layout read. All in one block, so that what is
// stored comes before what is read.
bool is_passed_list(const GraphValue* list, size_t& visits) {
  const Node* node = list->node();
  if (!node || node->kind() != NodeKind::kListConstruct) return false;
  return std::all_of(list->uses().begin(), list->uses().end(), [&](const Use& use) {
    ++visits;
    return !use.block && use.node->block() == node->block() &&
           (keeps_layout(*use.node) || stores_into(*use.node, use.index));
  });
}

// The lists of the graph that pass the layout on. Each is analyzed once, because each of its uses asks and the pass
// does not change the uses of lists.
class PassedLists {
 public:
  explicit PassedLists(size_t& visits) : visits_(visits) {}

  // The list that a use puts its value into, if it is one that passes the layout on.
  const GraphValue* of(const Use& use) {
    if (use.block) return nullptr;
    const GraphValue* list = use.node->kind() == NodeKind::kListConstruct               ? use.node->output()
                             : !use.node->inputs().empty() && stores_into(*use.node, 0) ? use.node->input(0)
                                                                                        : nullptr;
    if (!list) return nullptr;
    const auto [it, is_new] = known_.try_emplace(list);
    if (is_new) it->second = is_passed_list(list, visits_);
    return it->second ? list : nullptr;
  }

 private:
  size_t& visits_;
  std::unordered_map<const GraphValue*, bool> known_;
};

class LayoutPlan {
 public:
  LayoutPlan(Graph& graph, PassContext& context) : graph_(graph), context_(context), alias_(graph) {}

  // Values, their uses and nodes' inputs that were looked at.
  size_t visits() const { return visits_; }

  bool run() {
    find_roots();
    do {
      spread();
    } while (drop_hazards());
    return apply();
  }

 private:
  void find_roots() {
    for_each_node(graph_.block(), [&](Node* node) {
      const ops::PackedOp* packed = packed_of(*node);
      if (packed && !packed->is_channels_last() && packed->with_channels_last()) roots_.insert(node);
    });
  }

  // Whether a use accepts any memory order.
  bool is_tolerant(const Use& use) {
    if (use.block) return false;
    return packed_of(*use.node) || keeps_layout(*use.node) || reads_only_shape(*use.node) || lists_.of(use);
  }

  // Finds the values (and lists of values) that may be channels_last, each with the values it has the layout from.
  void spread() {
    sources_.clear();
    order_.clear();
    for_each_node(graph_.block(), [&](Node* node) {
      if (roots_.contains(node)) {
        for (GraphValue* output : node->outputs()) sources_of(output);
      } else if (!packed_of(*node) && keeps_layout(*node)) {
        for (const GraphValue* input : node->inputs()) {
          if (!sources_.contains(input)) continue;
          for (GraphValue* output : node->outputs()) sources_of(output).push_back(input);
        }
      }
      // What is stored in a list is read from it later.
      for (size_t i = 0; i < node->inputs().size(); ++i) {
        ++visits_;
        const GraphValue* list = lists_.of({node, nullptr, i});
        if (!list || list == node->input(i) || !sources_.contains(node->input(i))) continue;
        sources_of(const_cast<GraphValue*>(list)).push_back(node->input(i));
      }
    });
  }

  std::vector<const GraphValue*>& sources_of(GraphValue* value) {
    const auto [it, is_new] = sources_.try_emplace(value);
    if (is_new) order_.push_back(value);
    return it->second;
  }

  // Gives up the convolutions that the value comes from. It visits each value on the way only once for all calls.
  void give_up(const GraphValue* value) {
    std::vector<const GraphValue*> left{value};
    while (!left.empty()) {
      const GraphValue* at = left.back();
      left.pop_back();
      ++visits_;
      if (!given_up_.insert(at).second) continue;
      roots_.erase(at->node());
      const std::vector<const GraphValue*>& from = sources_.at(at);
      left.insert(left.end(), from.begin(), from.end());
    }
  }

  // Whether a copy made before the use may later differ from the value.
  bool is_hazard(const GraphValue* value, const Use& use) {
    if (is_tolerant(use)) return false;
    if (!use.node) return false;  // the graph's own output: nothing runs after it
    return alias_.writes_to(use.node, value) || alias_.may_be_written_after(value, use.node);
  }

  bool drop_hazards() {
    const size_t before = roots_.size();
    given_up_.clear();
    for (const GraphValue* value : order_) {
      for (const Use& use : value->uses()) {
        ++visits_;
        if (is_hazard(value, use)) give_up(value);
      }
    }
    return roots_.size() != before;
  }

  bool apply() {
    bool changed = false;
    for (GraphValue* value : order_) {
      if (roots_.contains(value->node())) {
        if (!context_.take_change()) continue;
        set_packed(*value->node(), packed_of(*value->node())->with_channels_last());
        changed = true;
      }
      const std::vector<Use> uses = value->uses();
      for (const Use& use : uses) {
        ++visits_;
        if (!is_tolerant(use) && value->type()->kind() == ops::TypeKind::kTensor) make_contiguous(value, use);
      }
    }
    return changed;
  }

  void make_contiguous(GraphValue* value, const Use& use) {
    static const ops::Op& contiguous = ops::get_op("aten::contiguous");
    std::vector<GraphValue*> inputs{value};
    std::vector<Node*> nodes;
    const std::vector<ops::Value> bound = ops::bind(contiguous, {ops::Value(Tensor::meta(Dims{}, DType::kFloat32))});
    for (const ops::Value& argument : std::span(bound).subspan(1)) {
      nodes.push_back(graph_.create_constant(argument));
      inputs.push_back(nodes.back()->output());
    }
    nodes.push_back(graph_.create(contiguous, inputs));
    GraphValue* copy = nodes.back()->output();
    for (Node* node : nodes) {
      if (use.block)
        node->append_to(use.block);
      else
        node->insert_before(use.node);
    }
    if (use.block)
      use.block->replace_output(use.index, copy);
    else
      use.node->replace_input(use.index, copy);
  }

  Graph& graph_;
  PassContext& context_;
  AliasAnalysis alias_;
  size_t visits_ = 0;
  PassedLists lists_{visits_};
  std::unordered_set<const Node*> roots_;
  std::unordered_map<const GraphValue*, std::vector<const GraphValue*>> sources_;
  std::vector<GraphValue*> order_;  // keys of sources_ in the order of the graph
  std::unordered_set<const GraphValue*> given_up_;
};

}  // namespace

bool use_channels_last(Graph& graph, PassContext& context) { return LayoutPlan(graph, context).run(); }

size_t channels_last_visits(Graph& graph, PassContext& context) {
  LayoutPlan plan(graph, context);
  plan.run();
  return plan.visits();
}

}  // namespace tensord::jit
