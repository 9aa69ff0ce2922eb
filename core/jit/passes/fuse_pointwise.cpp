// fuse_pointwise: groups elementwise operators and operators along the last dimension (softmax, layer norm, sums) that
// use each other's results, so that a group takes one pass over memory. Shapes must be known. A group runs at the place
// of its last node; values with other users become further results of it. The operator that runs groups decides which
// ones its kernel supports. Nodes that write, or whose values are written, are not grouped; see functionalize.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/base/error.h"
#include "core/jit/ir/alias.h"
#include "core/jit/passes/passes.h"
#include "core/ops/attributes/fused.h"
#include "core/ops/registry.h"

namespace tensord::jit {

using ops::Value;

namespace {

constexpr size_t kMaxGroupNodes = 48, kMaxInputs = 24;

// The nodes of a group, all of one block, in order.
using Group = std::vector<Node*>;

bool is_real_tensor(const GraphValue* value) {
  return value->known().is_strided() && !is_complex(value->known().to_tensor().dtype());
}

// A group as a list of calls, with its inputs and outputs.
struct Calls {
  std::vector<GraphValue*> inputs, outputs;
  IntrusivePtr<ops::FusedCalls> calls;
};

Calls calls_of(const Group& group) {
  Calls made;
  std::unordered_map<const GraphValue*, int> numbers;
  const std::unordered_set<const Node*> members(group.begin(), group.end());
  for (const Node* node : group) {
    for (GraphValue* input : node->inputs()) {
      if (!input->known().is_strided() || (input->node() && members.contains(input->node()))) continue;
      if (numbers.try_emplace(input, static_cast<int>(made.inputs.size())).second) made.inputs.push_back(input);
    }
  }
  std::vector<ops::FusedStep> steps;
  std::vector<int> outputs;
  for (const Node* node : group) {
    ops::FusedStep step{node->op(), {}};
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      const GraphValue* input = node->input(i);
      if (input->known().is_strided()) {
        step.arguments.emplace_back();
        step.operands.emplace_back(static_cast<int>(i), numbers.at(input));
      } else {
        step.arguments.push_back(input->constant() ? *input->constant() : input->known());
      }
    }
    const int number = static_cast<int>(made.inputs.size() + steps.size());
    numbers[node->output()] = number;
    steps.push_back(std::move(step));
    const auto& uses = node->output()->uses();
    if (std::any_of(uses.begin(), uses.end(),
                    [&](const auto& use) { return use.block || !members.contains(use.node); })) {
      outputs.push_back(number);
      made.outputs.push_back(node->output());
    }
  }
  made.calls = make_intrusive<ops::FusedCalls>(made.inputs.size(), std::move(steps), std::move(outputs));
  return made;
}

class Fuser {
 public:
  Fuser(Graph& graph, PassContext& context, const ops::Op& op)
      : graph_(graph), context_(context), alias_(graph), op_(op) {}

  bool run() {
    block(graph_.block());
    return changed_;
  }

 private:
  void block(Block* block) {
    std::vector<Node*> nodes;
    for (Node* node = block->first(); node; node = node->next()) {
      for (Block* inner : node->blocks()) this->block(inner);
      order_[node] = nodes.size();
      nodes.push_back(node);
    }
    std::vector<Group> groups;
    std::unordered_map<const Node*, size_t> group_of;
    for (Node* node : nodes) {
      if (!is_candidate(*node)) continue;
      Group group{node};
      for (const size_t i : groups_before(*node, group_of)) {
        Group joined = join(groups[i], group);
        if (!is_worth(groups[i], group) || !is_legal(joined) || !is_covered(joined)) continue;
        group = std::move(joined);
        groups[i].clear();
      }
      for (const Node* member : group) group_of[member] = groups.size();
      groups.push_back(std::move(group));
    }
    for (const Group& group : groups) {
      if (group.size() > 1 && context_.take_change()) replace(group);
    }
  }

  // Whether the node is pure, its tensors have known shapes and are never written, and its other arguments are known.
  bool is_candidate(const Node& node) const {
    const ops::Op* op = node.op();
    if (!op || op->base || !(op->is_pointwise || op->is_reduction) || !node.is_pure_op()) return false;
    if (node.outputs().size() != 1 || !is_real_tensor(node.output()) || alias_.has_writers(node.output())) return false;
    if (node.output()->known().to_tensor().numel() == 0) return false;
    bool has_tensor = false;
    for (const GraphValue* input : node.inputs()) {
      const Value& known = input->known();
      if (known.is_strided()) {
        if (!is_real_tensor(input) || alias_.has_writers(input)) return false;
        has_tensor = true;
      } else if (!input->constant() && known.is_none()) {
        return false;
      } else if (known.is_list() && known.to_list()->element->kind() == ops::TypeKind::kTensor) {
        return false;
      }
    }
    return has_tensor;
  }

  // The groups of the node's operands, the latest first.
  static std::vector<size_t> groups_before(const Node& node, const std::unordered_map<const Node*, size_t>& group_of) {
    std::vector<size_t> found;
    for (const GraphValue* input : node.inputs()) {
      const auto it = group_of.find(input->node());
      if (it != group_of.end()) found.push_back(it->second);
    }
    std::sort(found.rbegin(), found.rend());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  Group join(const Group& a, const Group& b) const {
    Group joined;
    std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(joined),
               [&](const Node* x, const Node* y) { return order_.at(x) < order_.at(y); });
    return joined;
  }

  // The number of elements that a group processes: those of its largest result or of the input of a reduction.
  static int64_t size_of(const Group& group) {
    int64_t size = 0;
    for (const Node* node : group) {
      size = std::max(size, node->output()->known().to_tensor().numel());
      for (const GraphValue* input : node->inputs()) {
        if (node->op()->is_reduction && input->known().is_strided())
          size = std::max(size, input->known().to_tensor().numel());
      }
    }
    return size;
  }
  // A fused value that is broadcast would be computed again for each copy. A value smaller than its operands comes from
  // the results of a reduction and is computed once per row.
  static bool is_worth(const Group& producers, const Group& users) {
    const auto reduces = [](const Node* node) { return node->op()->is_reduction; };
    const int64_t size = size_of(users);
    return size_of(producers) == size ||
           (size_of(producers) > size && std::none_of(users.begin(), users.end(), reduces));
  }

  // All nodes move to the place of the last one, so no other node may use their results before it.
  bool is_legal(const Group& group) const {
    if (group.size() > kMaxGroupNodes) return false;
    const size_t last = order_.at(group.back());
    const std::unordered_set<const Node*> members(group.begin(), group.end());
    for (const Node* node : group) {
      for (const GraphValue::Use& use : node->output()->uses()) {
        const Node* user = use.node;
        while (user && user->block() != node->block()) user = user->block()->owner();
        if (user && !members.contains(user) && order_.at(user) < last) return false;
      }
    }
    return true;
  }

  bool is_covered(const Group& group) const {
    const Device device = group.back()->output()->known().to_tensor().device();
    const ops::PrepareFn& prepare = op_.prepare[static_cast<size_t>(device.kind)];
    const Calls made = calls_of(group);
    if (!prepare || made.inputs.size() > kMaxInputs || made.outputs.empty()) return false;
    std::vector<Tensor> inputs, outputs;
    for (const GraphValue* input : made.inputs) {
      const Value* constant = input->constant();
      inputs.push_back(constant && constant->is_strided() ? constant->to_tensor() : input->known().to_tensor());
    }
    for (const GraphValue* output : made.outputs) outputs.push_back(output->known().to_tensor());
    for (const auto* tensors : {&inputs, &outputs}) {
      for (const Tensor& tensor : *tensors) {
        if (tensor.device() != device) return false;
      }
    }
    const Value arguments[] = {Value(IntrusivePtr<ops::OpaqueObject>(made.calls)), ops::make_tensor_list(inputs)};
    ops::PackStore packs;
    ops::PrepareArgs args{op_, arguments, outputs};
    args.packs = &packs;
    try {
      return prepare(args) != nullptr;
    } catch (const Error&) {
      return false;  // its calls fail in the run, with a location
    }
  }

  void replace(const Group& group) {
    const Calls made = calls_of(group);
    Node* last = group.back();
    const auto place = [&](Node* node) {
      node->set_location(last->location());
      node->insert_before(last);
      return node;
    };
    Node* constant =
        place(graph_.create_constant(Value(IntrusivePtr<ops::OpaqueObject>(made.calls)), ops::fused_type()));
    Node* list = place(graph_.create(NodeKind::kListConstruct, made.inputs));
    list->add_output(ops::list_type(ops::tensor_type()));
    GraphValue* const inputs[] = {constant->output(), list->output()};
    Node* fused = place(graph_.create(op_, inputs));
    GraphValue* const results[] = {fused->output()};
    Node* unpack = place(graph_.create(NodeKind::kListUnpack, results));
    std::vector<Value> given, got;
    for (const GraphValue* input : made.inputs) given.push_back(input->known());
    for (GraphValue* output : made.outputs) {
      GraphValue* result = unpack->add_output(output->type());
      result->set_name(output->name());
      result->set_known(output->known());
      got.push_back(output->known());
      output->replace_all_uses_with(result);
    }
    list->output()->set_known(ops::make_list(ops::tensor_type(), std::move(given)));
    fused->output()->set_known(ops::make_list(ops::tensor_type(), std::move(got)));
    for (size_t i = group.size(); i-- > 0;) group[i]->destroy();
    changed_ = true;
  }

  Graph& graph_;
  PassContext& context_;
  AliasAnalysis alias_;
  const ops::Op& op_;
  std::unordered_map<const Node*, size_t> order_;  // position within the block
  bool changed_ = false;
};

}  // namespace

bool fuse_pointwise(Graph& graph, PassContext& context) {
  const ops::Op* op = ops::find_op(ops::kRunFused);
  return op && Fuser(graph, context, *op).run();
}

}  // namespace tensord::jit
