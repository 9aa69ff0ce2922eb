#include "core/jit/importers/onnx/body_copier.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/ops/run.h"

namespace tensord::jit::onnx {

using ops::TypeKind;
using ops::Value;

namespace {

constexpr int kMaxCallDepth = 30;
// Maximum size of constant tensors and lists whose elements are evaluated.
constexpr int64_t kMaxElements = 64;

bool is_simple(const Value& value) {
  if (value.is_list()) {
    const auto& items = value.to_list()->items;
    return std::ssize(items) <= kMaxElements &&
           std::ranges::all_of(items, [](const Value& item) { return item.is_number() || item.is_string(); });
  }
  return value.is_none() || value.is_number() || value.is_string();
}

// Whether the list is neither written to nor aliased.
bool is_only_read(const GraphValue& list) {
  return std::ranges::all_of(list.uses(), [](const GraphValue::Use& use) {
    // The function's own result has no owner.
    if (use.block) {
      return use.node && use.node->kind() == NodeKind::kIf && is_only_read(*use.node->output(use.index));
    }
    const Node& node = *use.node;
    if (node.kind() == NodeKind::kUncheckedCast) return is_only_read(*node.output());
    return node.kind() == NodeKind::kCallFunction || node.is_pure_op();
  });
}

bool writes_lists(const Block& block) {
  for (const Node* node = block.first(); node; node = node->next()) {
    if (node->op() && node->op()->schema.is_mutating()) return true;
    if (std::ranges::any_of(node->blocks(), [](const Block* inner) { return writes_lists(*inner); })) return true;
  }
  return false;
}

}  // namespace

BodyCopier::Place BodyCopier::place_of(GraphValue* value) const {
  const Value* constant = value->constant();
  if (constant && is_simple(*constant) && !constant->is_list()) return {value, *constant};
  // A list of constants that was created for this call only.
  const Node* node = value->node();
  if (node && node->kind() == NodeKind::kListConstruct && !value->has_uses()) {
    std::vector<Value> items;
    for (const GraphValue* item : node->inputs()) {
      const Value* known = item->constant();
      if (!known || !(known->is_number() || known->is_string())) return {value, std::nullopt};
      items.push_back(*known);
    }
    if (std::ssize(items) <= kMaxElements) {
      return {value, Value(ops::make_list(value->type()->element(), std::move(items)))};
    }
  }
  return {value, std::nullopt};
}

GraphValue* BodyCopier::use(const Place& place, const ops::TypePtr& type) {
  if (place.value) return place.value;
  if (!place.known->is_list()) return builder_.constant(*place.known, place.known->is_none() ? nullptr : type);
  std::vector<GraphValue*> items;
  const ops::List& list = place.known->to_list();
  for (const Value& item : list->items) items.push_back(builder_.constant(item));
  return builder_.list(list->element, items);
}

GraphValue* BodyCopier::use(Frame& frame, const GraphValue* source) {
  return use(frame.places.at(source), source->type()->kind() == TypeKind::kOptional ? nullptr : source->type());
}

GraphValue* BodyCopier::call(const Function& function, std::span<GraphValue* const> arguments) {
  is_in_branch_ = builder_.block() != builder_.graph().block();
  std::vector<Place> places;
  for (GraphValue* argument : arguments) places.push_back(place_of(argument));
  return use(body(function, std::move(places)), nullptr);
}

BodyCopier::Place BodyCopier::body(const Function& function, std::vector<Place> arguments) {
  check_internal(++depth_ < kMaxCallDepth, "functions of the library call each other without end");
  const Block& source = *function.graph->block();
  Frame frame;
  frame.writes_lists = writes_lists(source);
  for (size_t i = 0; i < arguments.size(); ++i) {
    Place& place = arguments[i];
    if (place.known && place.known->is_list() && frame.writes_lists && !is_only_read(*source.inputs()[i])) {
      place.value = use(place, nullptr);
      place.known.reset();
    }
    frame.places[source.inputs()[i]] = std::move(place);
  }
  block(frame, source);
  --depth_;
  return source.outputs().empty() ? Place{nullptr, Value()} : frame.places.at(source.outputs().front());
}

void BodyCopier::block(Frame& frame, const Block& source) {
  for (const Node* each = source.first(); each; each = each->next()) node(frame, *each);
}

void BodyCopier::node(Frame& frame, const Node& node) {
  if (fold(frame, node)) return;
  if (node.is_op("prim::RaiseException")) refuse(frame, node);
  switch (node.kind()) {
    case NodeKind::kIf: {
      const Place& condition = frame.places.at(node.input());
      if (!condition.known) break;
      const Block& taken = *node.blocks()[condition.known->to_bool() ? 0 : 1];
      const bool of_tensor = condition.of_tensor;
      ways_of_tensors_ += of_tensor;
      block(frame, taken);
      ways_of_tensors_ -= of_tensor;
      for (size_t i = 0; i < node.outputs().size(); ++i) {
        Place result = frame.places.at(taken.outputs()[i]);
        result.of_tensor = result.of_tensor || of_tensor;
        frame.places[node.output(i)] = result;
      }
      return;
    }
    case NodeKind::kCallFunction: {
      if (node.name() == kAtLoad) {
        frame.places[node.output()] = {nullptr, Value(false)};
        return;
      }
      const Function* callee = library_.find_function(node.name());
      if (!callee) break;
      std::vector<Place> arguments;
      for (const GraphValue* input : node.inputs()) arguments.push_back(frame.places.at(input));
      const Place result = body(*callee, std::move(arguments));
      frame.places[node.output()] = result;
      return;
    }
    default: break;
  }
  copy(frame, node);
}

void BodyCopier::copy(Frame& frame, const Node& node) {
  std::vector<GraphValue*> inputs;
  for (const GraphValue* input : node.inputs()) inputs.push_back(use(frame, input));
  Node* made = builder_.add(builder_.graph().create_like(node, inputs));
  for (size_t i = 0; i < node.outputs().size(); ++i) frame.places[node.output(i)] = {made->output(i), std::nullopt};
  if (!node.blocks().empty()) copy_blocks(frame, node, made);
}

void BodyCopier::copy_blocks(Frame& frame, const Node& node, Node* made) {
  for (const Block* source : node.blocks()) {
    Block* target = made->add_block();
    for (const GraphValue* input : source->inputs()) {
      frame.places[input] = {target->add_input(input->type(), input->name()), std::nullopt};
    }
    const GraphBuilder::Inside inside(builder_, target);
    ++unknown_ways_;
    block(frame, *source);
    --unknown_ways_;
    for (const GraphValue* output : source->outputs()) target->add_output(use(frame, output));
  }
}

// Only if every run reaches it: a branch of the model may check a condition on a tensor before.
void BodyCopier::refuse(const Frame& frame, const Node& raise) const {
  if (unknown_ways_ > 0 || (ways_of_tensors_ > 0 && is_in_branch_)) return;
  const std::optional<Value>& message = frame.places.at(raise.input(0)).known;
  const ErrorCode code = ways_of_tensors_ > 0 ? ErrorCode::kDataLoss : ErrorCode::kUnimplemented;
  fail(code, message && message->is_string() ? message->to_string() : "every run of it fails");
}

// Whether the node's result is known, so that the graph does not need the node.
bool BodyCopier::fold(Frame& frame, const Node& node) {
  switch (node.kind()) {
    case NodeKind::kConstant:
      if (!is_simple(node.constant()) || node.constant().is_list()) return false;
      frame.places[node.output()] = {nullptr, node.constant()};
      return true;
    case NodeKind::kUncheckedCast: {
      const Place& place = frame.places.at(node.input());
      if (!place.known && !ops::is_subtype(place.value->type(), node.output()->type())) return false;
      const Place same = place;
      frame.places[node.output()] = same;
      return true;
    }
    case NodeKind::kListConstruct: {
      if (frame.writes_lists) return false;
      std::vector<Value> items;
      bool of_tensor = false;
      for (const GraphValue* input : node.inputs()) {
        const Place& place = frame.places.at(input);
        of_tensor = of_tensor || place.of_tensor;
        if (!place.known || !(place.known->is_number() || place.known->is_string())) return false;
        items.push_back(*place.known);
      }
      const ops::TypePtr& element = node.output()->type()->element();
      const TypeKind kind = element->kind();
      if (kind != TypeKind::kInt && kind != TypeKind::kFloat && kind != TypeKind::kBool && kind != TypeKind::kString)
        return false;
      frame.places[node.output()] = {nullptr, Value(ops::make_list(element, std::move(items))), of_tensor};
      return true;
    }
    case NodeKind::kOp: return fold_none_check(frame, node) || fold_op(frame, node);
    default: return false;
  }
}

// `x is None` for an x that may be None.
bool BodyCopier::fold_none_check(Frame& frame, const Node& node) {
  const bool is_check = node.is_op("aten::__is__"), is_not_check = node.is_op("aten::__isnot__");
  if (!is_check && !is_not_check) return false;
  const Place& place = frame.places.at(node.input(0));
  const Place& other = frame.places.at(node.input(1));
  if (place.known || !other.known || !other.known->is_none()) return false;
  const TypeKind kind = place.value->type()->kind();
  if (kind != TypeKind::kTensor && kind != TypeKind::kList) return false;
  frame.places[node.output()] = {nullptr, Value(is_not_check)};
  return true;
}

bool BodyCopier::fold_op(Frame& frame, const Node& node) {
  if (!node.is_pure_op() || node.outputs().size() != 1) return false;
  std::vector<Value> arguments;
  bool of_tensor = false;
  for (const GraphValue* input : node.inputs()) {
    const Place& place = frame.places.at(input);
    of_tensor = of_tensor || place.of_tensor || !place.known;
    if (place.known) {
      arguments.push_back(*place.known);
      continue;
    }
    const Tensor tensor = tensor_of_(place.value);
    if (!tensor.defined()) return false;
    const bool is_read = place.value->constant() && tensor.numel() <= kMaxElements;
    if (!node.op()->reads_only_shape && !is_read) return false;
    arguments.push_back(tensor);
  }
  try {
    const std::vector<Value> results = ops::run(*node.op(), arguments);
    const bool keeps = results.size() == 1 && is_simple(results[0]) && !(results[0].is_list() && frame.writes_lists);
    if (!keeps) return false;
    frame.places[node.output()] = {nullptr, results[0], of_tensor};
    return true;
  } catch (const Error&) {
    return false;  // the run reports the error if it gets here
  }
}

}  // namespace tensord::jit::onnx
