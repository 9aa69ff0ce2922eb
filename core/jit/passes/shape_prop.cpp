// shape_prop: finds the shape and dtype of every value that does not depend on data, from what is known about the
// graph's inputs (GraphValue::known, set by the caller) with the operators' `infer`. Shape queries ("how long is
// dimension 0") become constants. Without known inputs it does nothing. Branches and loops that became constant are
// left to const_prop and unroll. An out= operator may change the shape of its target. Because a value has one shape for
// the whole graph, the shape of such a target is unknown; a first walk that changes nothing finds these targets.
#include <algorithm>

#include "core/base/error.h"
#include "core/jit/ir/alias.h"
#include "core/jit/ir/graph_builder.h"
#include "core/jit/passes/passes.h"
#include "core/jit/passes/same_constant.h"
#include "core/ops/run.h"

namespace tensord::jit {

using ops::TypeKind;
using ops::Value;

namespace {

Tensor shape_of(const Tensor& tensor) {
  if (tensor.is_meta()) return tensor;
  return Tensor::meta_strided(tensor.sizes(), tensor.strides(), tensor.dtype(), tensor.device());
}

// The value with its tensors replaced by meta tensors.
Value shapes_of(const Value& value) {
  if (value.is_strided()) return shape_of(value.to_tensor());
  if (value.is_list() && value.to_list()->element->kind() == TypeKind::kTensor) {
    std::vector<Value> items;
    for (const Value& item : value.to_list()->items) items.push_back(shapes_of(item));
    return ops::make_list(value.to_list()->element, std::move(items));
  }
  if (value.is_tuple()) {
    std::vector<Value> items;
    for (const Value& item : value.to_tuple()->items) items.push_back(shapes_of(item));
    return make_intrusive<ops::TupleObject>(std::move(items), value.to_tuple()->type);
  }
  return value;
}

bool is_same_shape(const Value& a, const Value& b) {
  if (a.is_strided() && b.is_strided()) {
    const Tensor &x = a.to_tensor(), &y = b.to_tensor();
    return x.sizes() == y.sizes() && x.strides() == y.strides() && x.dtype() == y.dtype() && x.device() == y.device();
  }
  return a.is_number() && same_constant(a, b);
}

bool holds_list(const ops::Type& type) {
  if (type.kind() == TypeKind::kList || type.kind() == TypeKind::kDict) return true;
  return std::any_of(type.contained().begin(), type.contained().end(),
                     [](const auto& item) { return holds_list(*item); });
}

class ShapePropagation {
 public:
  ShapePropagation(Graph& graph, PassContext& context) : graph_(graph), context_(context), alias_(graph) {}

  bool run() {
    const auto inputs = graph_.inputs();
    if (std::all_of(inputs.begin(), inputs.end(), [](const GraphValue* v) { return v->known().is_none(); }))
      return false;
    // If the script writes to a list, the list may differ from the argument by the time it is read.
    for (GraphValue* input : inputs) {
      if (holds_list(*input->type())) know(input, input->known());
    }
    if (has_targets(graph_.block())) find_reshaped();
    block(graph_.block());
    return changed_;
  }

 private:
  // Whether the node is an out= operator, whose last argument is the target.
  static bool has_target(const Node& node) {
    const ops::Op* op = node.op();
    return op && op->base && op->schema.arguments.size() > op->base->schema.arguments.size();
  }

  static bool has_targets(Block* block) {
    for (Node* node = block->first(); node; node = node->next()) {
      if (has_target(*node)) return true;
      for (Block* inner : node->blocks()) {
        if (has_targets(inner)) return true;
      }
    }
    return false;
  }

  void find_reshaped() {
    is_dry_ = true;
    for (size_t before = reshaped_.size() + 1; before != reshaped_.size();) {
      before = reshaped_.size();
      for (GraphValue* input : graph_.inputs()) know(input, input->known());
      block(graph_.block());
    }
    is_dry_ = false;
  }

  // Records a target whose shape may change.
  void record_target(const Node& node) {
    if (!is_dry_ || !has_target(node)) return;
    const GraphValue* target = node.inputs().back();
    if (std::find(reshaped_.begin(), reshaped_.end(), target) != reshaped_.end()) return;
    std::vector<Value> arguments, results;
    const bool is_known = are_known(node, arguments) && arguments.back().is_strided();
    const Value given = is_known ? arguments.back() : Value();
    if (is_known) arguments.pop_back();
    const bool stays = is_known && evaluate(*node.op()->base, arguments, results) && results[0].is_strided() &&
                       results[0].to_tensor().sizes() == given.to_tensor().sizes();
    if (!stays) reshaped_.push_back(target);
  }

  // Whether the value is or contains a tensor whose shape changes.
  bool may_be_reshaped(const GraphValue* value) const {
    if (reshaped_.empty()) return false;
    const std::vector<int> locations = alias_.reachable(value);
    return std::any_of(reshaped_.begin(), reshaped_.end(), [&](const GraphValue* target) {
      return std::find(locations.begin(), locations.end(), alias_.location(target)) != locations.end();
    });
  }

  void block(Block* block) {
    for (Node* node = block->first(); node;) {
      Node* next = node->next();
      if (Node* first = take_branch(node)) {
        next = first;
      } else {
        visit(node);
      }
      node = next;
    }
  }

  // Takes a branch with a known condition at once, because later shapes depend on its results. Returns the first node
  // of the branch, or the next node.
  Node* take_branch(Node* node) {
    if (node->kind() != NodeKind::kIf || is_dry_) return nullptr;
    const Value* condition = node->input()->constant();
    if (!condition || !condition->is_bool() || !node->next() || !context_.take_change()) return nullptr;
    changed_ = true;
    Block* taken = node->blocks()[condition->to_bool() ? 0 : 1];
    Node* first = taken->first() ? taken->first() : node->next();
    const std::vector<GraphValue*> results(taken->outputs().begin(), taken->outputs().end());
    while (taken->first()) taken->first()->move_before(node);
    for (size_t i = 0; i < results.size(); ++i) node->output(i)->replace_all_uses_with(results[i]);
    node->destroy();
    return first;
  }

  void visit(Node* node) {
    switch (node->kind()) {
      case NodeKind::kConstant: return know(node->output(), shapes_of(node->constant()));
      case NodeKind::kOp: return op(node);
      case NodeKind::kListConstruct: return list(node);
      case NodeKind::kTupleConstruct: return tuple(node);
      case NodeKind::kListUnpack:
      case NodeKind::kTupleUnpack: return unpack(node);
      case NodeKind::kTupleIndex: return tuple_index(node);
      case NodeKind::kUncheckedCast: return know(node->output(), node->input()->known());
      case NodeKind::kIf: return branches(node);
      case NodeKind::kLoop: return loop(node);
      case NodeKind::kPlan: return;
      default:
        for (Block* inner : node->blocks()) block(inner);
        for (GraphValue* output : node->outputs()) output->set_known({});
    }
  }

  // A list that is written does not keep its items, so nothing is known about it.
  void know(GraphValue* value, Value known) {
    const TypeKind kind = value->type()->kind();
    const bool is_container = kind != TypeKind::kTensor && AliasAnalysis::is_mutable_type(*value->type());
    if (is_container && kind != TypeKind::kOptional && alias_.has_writers(value)) known = {};
    if (may_be_reshaped(value)) known = {};
    value->set_known(std::move(known));
  }

  void forget(Node* node) {
    for (GraphValue* output : node->outputs()) output->set_known({});
  }

  static bool are_known(const Node& node, std::vector<Value>& values) {
    for (const GraphValue* input : node.inputs()) {
      const bool is_none = input->constant() && input->constant()->is_none();
      if (input->known().is_none() && !is_none) return false;
      values.push_back(input->known());
    }
    return true;
  }

  // A node without results is called for its effect, for example to print.
  static bool gives_tensors(const Node& node) {
    return !node.outputs().empty() &&
           std::all_of(node.outputs().begin(), node.outputs().end(), [](const GraphValue* output) {
             const ops::Type& type = *output->type();
             return (type.kind() == TypeKind::kList ? type.element()->kind() : type.kind()) == TypeKind::kTensor;
           });
  }

  void op(Node* node) {
    const ops::Op& op = *node->op();
    record_target(*node);
    std::vector<Value> arguments, results;
    const bool is_presence = op.schema.name == "aten::__is__" || op.schema.name == "aten::__isnot__";
    if (op.has_dynamic_shape || !are_known(*node, arguments)) return forget(node);
    if (is_presence && arguments[0].is_strided() && arguments[1].is_strided()) {
      const bool is_one = node->input(0) == node->input(1), asks_for_two = op.schema.name == "aten::__isnot__";
      if (is_one || are_two(*node)) return fold(node, {Value(is_one != asks_for_two)});
    }
    if (op.reads_only_shape || is_presence || is_arithmetic(*node, arguments)) {
      if (evaluate(op, arguments, results) && is_presence_known(is_presence, arguments)) return fold(node, results);
    } else if ((gives_tensors(*node) || op.is_view) && evaluate(op, arguments, results)) {
      for (size_t i = 0; i < results.size(); ++i) know(node->output(i), shapes_of(results[i]));
      return;
    }
    forget(node);
  }

  // Whether two tensors are known to be different objects, because both are new results.
  bool are_two(const Node& node) const {
    const auto is_new = [](const GraphValue* value) {
      const Node* maker = value->node();
      return maker && maker->op() && maker->op()->infer && !maker->op()->base;
    };
    return (is_new(node.input(0)) && is_new(node.input(1))) || !alias_.may_alias(node.input(0), node.input(1));
  }

  // Computations on sizes and numbers. They are evaluated here and not only in const_prop, because the next shapes
  // depend on them.
  static bool is_arithmetic(const Node& node, const std::vector<Value>& arguments) {
    const auto is_plain = [](const Value& v) { return v.is_number() || v.is_none() || v.is_string(); };
    return node.is_pure_op() && !node.op()->infer && !node.op()->base && node.outputs().size() == 1 &&
           std::all_of(arguments.begin(), arguments.end(), is_plain);
  }

  // Whether a tensor is None is known; whether two tensors are the same object is not.
  static bool is_presence_known(bool is_presence, const std::vector<Value>& arguments) {
    return !is_presence || arguments[0].is_none() || arguments[1].is_none();
  }

  // An operator that fails here also fails in the run, which reports the location.
  static bool evaluate(const ops::Op& op, const std::vector<Value>& arguments, std::vector<Value>& results) {
    try {
      results = ops::infer(op, arguments);
      return results.size() == op.schema.returns.size();
    } catch (const Error&) {
      return false;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  void fold(Node* node, const std::vector<Value>& results) {
    for (size_t i = 0; i < results.size(); ++i) node->output(i)->set_known(shapes_of(results[i]));
    if (is_dry_ || node->outputs().size() != 1) return;
    const Value& result = results.front();
    const bool is_plain = result.is_number() || result.is_device() || result.is_none() || result.is_string();
    const bool is_ints = result.is_list() && result.to_list()->element->kind() == TypeKind::kInt &&
                         !alias_.has_writers(node->output()) && !alias_.escapes(node->output());
    if ((!is_plain && !is_ints) || !context_.take_change()) return;
    GraphValue* constant = GraphBuilder(node).constant(result, is_ints ? node->output()->type() : nullptr);
    constant->set_known(result);
    GraphBuilder::replace_value(constant, node);
    node->destroy();
    changed_ = true;
  }

  void list(Node* node) {
    std::vector<Value> items;
    if (!are_known(*node, items)) return forget(node);
    know(node->output(), ops::make_list(node->output()->type()->element(), std::move(items)));
  }

  void tuple(Node* node) {
    std::vector<Value> items;
    if (!are_known(*node, items)) return forget(node);
    know(node->output(), make_intrusive<ops::TupleObject>(std::move(items)));
  }

  void unpack(Node* node) {
    const Value& from = node->input()->known();
    const std::vector<Value>* items = from.is_list() ? &from.to_list()->items : nullptr;
    if (from.is_tuple()) items = &from.to_tuple()->items;
    if (!items || items->size() != node->outputs().size()) return forget(node);
    for (size_t i = 0; i < items->size(); ++i) know(node->output(i), (*items)[i]);
  }

  void tuple_index(Node* node) {
    const Value& from = node->input()->known();
    const auto index = static_cast<size_t>(node->index());
    if (!from.is_tuple() || node->index() < 0 || index >= from.to_tuple()->items.size()) return forget(node);
    know(node->output(), from.to_tuple()->items[index]);
  }

  void branches(Node* node) {
    if (const Value* condition = node->input()->constant(); condition && condition->is_bool()) {
      Block* taken = node->blocks()[condition->to_bool() ? 0 : 1];
      block(taken);
      for (size_t i = 0; i < node->outputs().size(); ++i) know(node->output(i), taken->outputs()[i]->known());
      return;
    }
    for (Block* inner : node->blocks()) block(inner);
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      const Value &a = node->blocks()[0]->outputs()[i]->known(), &b = node->blocks()[1]->outputs()[i]->known();
      know(node->output(i), joined(a, b));
    }
  }

  // What is known after a branch: the common shape, but not which memory it is.
  static Value joined(const Value& a, const Value& b) {
    if (!is_same_shape(a, b)) return {};
    if (!a.is_strided()) return a;
    const Tensor& t = a.to_tensor();
    return Tensor::meta_strided(t.sizes(), t.strides(), t.dtype(), t.device());
  }

  // A carried value is known if one iteration does not change what is known about it.
  void loop(Node* node) {
    Block* body = node->blocks()[0];
    const size_t count = node->outputs().size();
    for (size_t i = 0; i < count; ++i) {
      const Value& initial = node->input(i + 2)->known();
      know(body->inputs()[i + 1], joined(initial, initial));
    }
    const bool was_dry = is_dry_;
    is_dry_ = true;
    for (bool is_stable = false; !is_stable;) {
      block(body);
      is_stable = true;
      for (size_t i = 0; i < count; ++i) {
        GraphValue* carried = body->inputs()[i + 1];
        if (carried->known().is_none() || is_same_shape(carried->known(), body->outputs()[i + 1]->known())) continue;
        carried->set_known({});
        is_stable = false;
      }
    }
    is_dry_ = was_dry;
    block(body);
    for (size_t i = 0; i < count; ++i) {
      const Value& carried = body->inputs()[i + 1]->known();
      know(node->output(i), joined(carried, carried));
    }
  }

  Graph& graph_;
  PassContext& context_;
  AliasAnalysis alias_;
  std::vector<const GraphValue*> reshaped_;  // targets of out= operators whose shape may change
  bool is_dry_ = false;                      // only tries what a loop changes, without folding
  bool changed_ = false;
};

}  // namespace

bool propagate_shapes(Graph& graph, PassContext& context) { return ShapePropagation(graph, context).run(); }

}  // namespace tensord::jit
