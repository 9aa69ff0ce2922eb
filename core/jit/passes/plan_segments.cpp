// plan_segments: moves runs of nodes with known shapes into prim::Plan nodes, for which the runtime allocates one arena
// and makes a flat list of prepared calls. Nodes that depend on data, write, or work on other values than tensors stay
// outside and are interpreted. This is the last pass.
#include <algorithm>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "core/jit/passes/packing.h"
#include "core/jit/passes/passes.h"
#include "core/ops/complex.h"

namespace tensord::jit {

using ops::TypeKind;
using ops::Value;

namespace {

// Prepared calls support only real dtypes, so complex tensors are left to the interpreter.
bool is_real_tensor(const Value& value) {
  return value.is_strided() && value.to_tensor().defined() && !is_complex(value.to_tensor().dtype());
}

bool is_tensor_list(const Value& value) {
  return value.is_list() && value.to_list()->element->kind() == TypeKind::kTensor &&
         std::all_of(value.to_list()->items.begin(), value.to_list()->items.end(), is_real_tensor);
}

// Whether all tensors are on one device; stores it in `device`. Constant numbers may be on the host.
bool is_on_one_device(const Value& value, bool is_constant, std::optional<Device>& device) {
  if (value.is_list()) {
    const auto& items = value.to_list()->items;
    return std::all_of(items.begin(), items.end(),
                       [&](const Value& item) { return is_on_one_device(item, is_constant, device); });
  }
  if (!value.is_strided() || !value.to_tensor().defined()) return true;
  const Tensor& tensor = value.to_tensor();
  if (is_constant && tensor.ndim() == 0 && tensor.device().is_host()) return true;
  if (!device) device = tensor.device();
  return tensor.device() == *device;
}

// The device of all tensors that the node takes and returns; empty if there are several.
std::optional<Device> device_of(const Node& node) {
  std::optional<Device> device;
  for (const GraphValue* output : node.outputs()) {
    if (!is_on_one_device(output->known(), false, device)) return std::nullopt;
  }
  for (const GraphValue* input : node.inputs()) {
    const Value* const constant = input->constant();
    if (!is_on_one_device(constant ? *constant : input->known(), constant != nullptr, device)) return std::nullopt;
  }
  return device;
}

bool is_known_tensor(const GraphValue* value) {
  return is_real_tensor(value->known()) || is_tensor_list(value->known());
}

bool is_constant(const GraphValue* value) { return value->constant() != nullptr; }

// Whether the planner can prepare the call: all operands and results have known shapes, and nothing is written.
bool is_call(const Node& node) {
  if (!node.is_pure_op() || node.op()->has_dynamic_shape) return false;
  const ops::Op& op = *node.op();
  const std::optional<Device> device = device_of(node);
  if (!device) return false;
  const auto kind = static_cast<size_t>(device->kind);
  const bool has_form = op.prepare[kind] || op.has_fill(static_cast<DeviceKind>(kind)) || op.is_view;
  const auto outputs = node.outputs();
  if (!has_form || outputs.empty() || !std::all_of(outputs.begin(), outputs.end(), is_known_tensor)) return false;
  if (op.is_view && is_constant(node.input(0))) return false;  // its memory does not belong to the plan
  bool has_tensor = false;
  for (const GraphValue* input : node.inputs()) {
    if (is_constant(input)) {
      if (ops::has_complex(std::span(input->constant(), 1))) return false;
      continue;
    }
    const bool is_list_of_plain = input->known().is_list() && !is_tensor_list(input->known());
    if (!is_known_tensor(input) && !is_list_of_plain && !input->known().is_number()) return false;
    has_tensor = has_tensor || is_known_tensor(input);
  }
  return has_tensor;
}

// Whether the node only makes or unpacks a list of tensors for a call; this costs nothing in a plan.
bool is_plumbing(const Node& node) {
  if (node.kind() == NodeKind::kListConstruct) return !node.inputs().empty() && is_tensor_list(node.output()->known());
  return node.kind() == NodeKind::kListUnpack && is_tensor_list(node.input()->known());
}

// Whether the results share the memory of an operand. Operators with an alias annotation copy where they must.
bool is_view(const Node& node) {
  if (!node.op()->is_view) return false;
  const Value& result = node.output()->known();
  if (!result.is_strided()) return true;
  return std::any_of(node.inputs().begin(), node.inputs().end(), [&](const GraphValue* input) {
    const Value& known = input->known();
    return known.is_strided() && known.to_tensor().alias_id() == result.to_tensor().alias_id();
  });
}

// A call that computes; views and lists do not.
bool is_work(const Node& node) { return is_call(node) && !is_view(node); }

class Segmenter {
 public:
  Segmenter(Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  bool run() {
    block(graph_.block());
    return changed_;
  }

 private:
  // The state since the last segment of a block: the nodes in order, and those that a plan could run.
  struct Run {
    std::vector<Node*> nodes;
    std::unordered_set<const Node*> candidates, deferred;
    std::optional<Device> device;  // the device of the candidates' tensors
    bool reads(const Node& node, const std::unordered_set<const Node*>& from) const {
      const auto inputs = node.inputs();
      return std::any_of(inputs.begin(), inputs.end(), [&](const GraphValue* v) { return from.contains(v->node()); });
    }
  };

  void block(Block* block) {
    Run run;
    for (Node* node = block->first(); node;) {
      Node* next = node->next();
      if (node->kind() == NodeKind::kConstant) {
        // no instruction; constants are moved out of the way of plans
        if (!run.nodes.empty()) node->move_before(run.nodes.front());
      } else if (is_call(*node) || is_plumbing(*node)) {
        const std::optional<Device> device = device_of(*node);
        if (run.reads(*node, run.deferred) || (run.device && device && *device != *run.device)) flush(run);
        if (device) run.device = device;
        run.nodes.push_back(node);
        run.candidates.insert(node);
      } else {
        if (node->kind() != NodeKind::kPlan) {
          for (Block* inner : node->blocks()) this->block(inner);
        }
        pass_by(node, run);
      }
      node = next;
    }
    flush(run);
  }

  // Handles a node for the interpreter: it goes before the plan if it reads nothing of it, after the plan if it can
  // wait; otherwise the plan ends here.
  void pass_by(Node* node, Run& run) {
    if (run.nodes.empty()) return;
    const bool is_quiet = node->blocks().empty() && (node->op() ? node->is_pure_op() : is_quiet_kind(node->kind()));
    if (!is_quiet) return flush(run);
    if (run.reads(*node, run.candidates) || run.reads(*node, run.deferred)) {
      run.nodes.push_back(node);
      run.deferred.insert(node);
    } else {
      node->move_before(run.nodes.front());
    }
  }

  static bool is_quiet_kind(NodeKind kind) {
    switch (kind) {
      case NodeKind::kListConstruct:
      case NodeKind::kTupleConstruct:
      case NodeKind::kDictConstruct:
      case NodeKind::kListUnpack:
      case NodeKind::kTupleUnpack:
      case NodeKind::kTupleIndex:
      case NodeKind::kIsInstance:
      case NodeKind::kUncheckedCast:
      case NodeKind::kUninitialized: return true;
      default: return false;
    }
  }

  void flush(Run& run) {
    const std::vector<Node*> nodes = kept(run);
    Node* const front = run.nodes.empty() ? nullptr : run.nodes.front();
    run = {};
    if (nodes.empty() || !context_.take_change()) return;
    outline(nodes, front);
    changed_ = true;
  }

  // Keeps calls that compute, the views and lists that they read, and views of their results with the other operands of
  // these; other views go to the interpreter.
  static std::vector<Node*> kept(const Run& run) {
    std::unordered_set<const Node*> keep;
    const auto keep_read = [&] {
      for (auto it = run.nodes.rbegin(); it != run.nodes.rend(); ++it) {
        if (run.candidates.contains(*it) && (is_work(**it) || is_used_in(**it, keep))) keep.insert(*it);
      }
    };
    keep_read();
    for (Node* node : run.nodes) {
      if (run.candidates.contains(node) && node->op() && run.reads(*node, keep)) keep.insert(node);
    }
    keep_read();
    std::vector<Node*> nodes;
    std::copy_if(run.nodes.begin(), run.nodes.end(), std::back_inserter(nodes),
                 [&](const Node* node) { return keep.contains(node); });
    return nodes;
  }

  static bool is_used_in(const Node& node, const std::unordered_set<const Node*>& nodes) {
    for (const GraphValue* output : node.outputs()) {
      for (const GraphValue::Use& use : output->uses()) {
        if (!use.block && nodes.contains(use.node)) return true;
      }
    }
    return false;
  }

  void outline(const std::vector<Node*>& nodes, Node* front) {
    const std::unordered_set<const Node*> inside(nodes.begin(), nodes.end());
    Node* plan = graph_.create(NodeKind::kPlan);
    plan->insert_before(front);
    Block* body = plan->add_block();
    for (Node* node : nodes) {
      if (node->kind() == NodeKind::kListConstruct) copy_for_outside(node, inside, plan);
    }
    std::unordered_map<GraphValue*, GraphValue*> captured;
    for (Node* node : nodes) {
      for (size_t i = 0; i < node->inputs().size(); ++i) {
        GraphValue* input = node->input(i);
        if (is_constant(input) || (input->node() && inside.contains(input->node()))) continue;
        GraphValue*& inner = captured[input];
        if (!inner) {
          plan->add_input(input);
          inner = body->add_input(input->type(), input->name());
          inner->set_known(input->known());
        }
        node->replace_input(i, inner);
      }
    }
    for (Node* node : nodes) {
      for (GraphValue* output : node->outputs()) give_out(plan, body, output, inside);
      node->move_to_end(body);
    }
  }

  // A list that is also used outside is made there a second time from the same items.
  void copy_for_outside(Node* list, const std::unordered_set<const Node*>& inside, Node* plan) {
    Node* copy = nullptr;
    const std::vector<GraphValue::Use> uses = list->output()->uses();
    for (const GraphValue::Use& use : uses) {
      if (!use.block && inside.contains(use.node)) continue;
      if (!copy) {
        copy = graph_.create_like(*list, list->inputs());
        copy->insert_after(plan);
      }
      if (use.block)
        use.block->replace_output(use.index, copy->output());
      else
        use.node->replace_input(use.index, copy->output());
    }
  }

  // Uses outside the plan read one of its outputs.
  static void give_out(Node* plan, Block* body, GraphValue* value, const std::unordered_set<const Node*>& inside) {
    GraphValue* result = nullptr;
    const std::vector<GraphValue::Use> uses = value->uses();
    for (const GraphValue::Use& use : uses) {
      if (!use.block && inside.contains(use.node)) continue;
      if (!result) {
        result = plan->add_output(value->type());
        result->set_known(value->known());
        result->set_name(value->name());
      }
      if (use.block)
        use.block->replace_output(use.index, result);
      else
        use.node->replace_input(use.index, result);
    }
    if (result) body->add_output(value);
  }

  Graph& graph_;
  PassContext& context_;
  bool changed_ = false;
};

}  // namespace

bool plan_segments(Graph& graph, PassContext& context) { return Segmenter(graph, context).run(); }

}  // namespace tensord::jit
