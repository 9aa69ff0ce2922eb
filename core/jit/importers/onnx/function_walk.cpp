#include "core/jit/importers/onnx/function_walk.h"

#include <algorithm>
#include <new>

#include "core/base/error.h"
#include "core/ops/run.h"

namespace tensord::jit::onnx {

using ops::Value;

namespace {

// Limits of one call, and of all calls of a model, which may take some seconds.
constexpr int kMaxCallSteps = 5000, kMaxAllSteps = 10'000'000, kMaxWalkDepth = 30;

// Thrown when the walk cannot continue.
struct Lost {};

bool asks_for_elements(const Error& error) {
  return std::string_view(error.what()).find("meta tensor") != std::string_view::npos;
}

// Whether the error would occur at run time too: it is not about missing elements, memory or a kernel.
bool is_about_arguments(const Error& error) {
  return (error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kOutOfRange) &&
         !asks_for_elements(error);
}

// Calls `visit` for each tensor in the value.
template <class Visit>
void for_each_tensor(const Value& value, const Visit& visit) {
  if (value.is_strided()) {
    if (value.to_tensor().defined()) visit(value.to_tensor());
  } else if (value.is_list() && value.to_list()->element->kind() == ops::TypeKind::kTensor) {
    for (const Value& item : value.to_list()->items) for_each_tensor(item, visit);
  }
}

bool has_elements(const std::vector<Value>& values) {
  bool all = true;
  for (const Value& value : values)
    for_each_tensor(value, [&](const Tensor& tensor) { all = all && !tensor.is_meta(); });
  return all;
}

bool are_small(const std::vector<Value>& values) {
  int64_t count = 0;
  for (const Value& value : values) for_each_tensor(value, [&](const Tensor& tensor) { count += tensor.numel(); });
  return count <= kMaxKnownElements;
}

// Keeps only shapes, so that inference allocates nothing, however large the tensors are.
Value without_data(const Value& value) {
  if (value.is_strided() && value.to_tensor().defined()) {
    const Tensor& tensor = value.to_tensor();
    return tensor.is_meta() ? value : Value(Tensor::meta(tensor.sizes(), tensor.dtype()));
  }
  if (!value.is_list() || value.to_list()->element->kind() != ops::TypeKind::kTensor) return value;
  std::vector<Value> items;
  for (const Value& item : value.to_list()->items) items.push_back(without_data(item));
  return Value(ops::make_list(value.to_list()->element, std::move(items)));
}

std::vector<Value> run(const ops::Op& op, const std::vector<Value>& arguments) {
  if (op.kind == ops::OpKind::kScript || (op.reads_only_shape && has_elements(arguments)))
    return ops::run(op, arguments);
  if (op.has_dynamic_shape) {
    if (!has_elements(arguments)) return {};
    return ops::run(op, arguments);
  }
  std::vector<Value> shapes;
  for (const Value& argument : arguments) shapes.push_back(without_data(argument));
  std::vector<Value> results = ops::infer(op, shapes);
  if (op.is_random || !has_elements(arguments) || !are_small(results)) return results;
  return ops::run(op, arguments);
}

// Drops the elements of large results.
Value without_elements(Value value) {
  if (!value.is_strided() || !value.to_tensor().defined()) return value;
  const Tensor& tensor = value.to_tensor();
  if (tensor.is_meta() || tensor.numel() <= kMaxKnownElements) return value;
  return Tensor::meta(tensor.sizes(), tensor.dtype());
}

}  // namespace

void FunctionWalk::count_step() {
  if (++steps_ > kMaxCallSteps || ++all_steps_ > kMaxAllSteps) throw Lost();
}

Known FunctionWalk::call(const Function& function, std::vector<Known> arguments) {
  steps_ = depth_ = 0;
  // The callee may write to its lists.
  for (Known& argument : arguments) {
    if (!argument.value || !argument.value->is_list()) continue;
    const ops::List& list = argument.value->to_list();
    argument.value = Value(ops::make_list(list->element, list->items));
  }
  try {
    return body(function, std::move(arguments));
  } catch (const Lost&) {
    return {};
  }
}

Known FunctionWalk::body(const Function& function, std::vector<Known> arguments) {
  if (++depth_ > kMaxWalkDepth) throw Lost();
  const Block& source = *function.graph->block();
  Places places(static_cast<size_t>(function.graph->value_id_bound()));
  for (size_t i = 0; i < arguments.size(); ++i) {
    places[static_cast<size_t>(source.inputs()[i]->id())] = std::move(arguments[i]);
  }
  block(places, source);
  --depth_;
  if (source.outputs().empty()) return {Value()};
  return places[static_cast<size_t>(source.outputs().front()->id())];
}

void FunctionWalk::block(Places& places, const Block& block) {
  for (const Node* each = block.first(); each; each = each->next()) step(places, *each);
}

void FunctionWalk::step(Places& places, const Node& source) {
  count_step();
  if (source.kind() == NodeKind::kConstant) {
    places[static_cast<size_t>(source.output()->id())] = {source.constant()};
    return;
  }
  if (source.kind() == NodeKind::kIf) return if_node(places, source);
  if (source.kind() == NodeKind::kLoop) return loop(places, source);
  std::vector<Known> inputs;
  inputs.reserve(source.inputs().size());
  for (const GraphValue* input : source.inputs()) inputs.push_back(places[static_cast<size_t>(input->id())]);
  std::vector<Known> results;
  if (source.kind() == NodeKind::kCallFunction && source.name() == kAtLoad) {
    results.push_back({Value(true)});
  } else if (source.kind() == NodeKind::kCallFunction) {
    const Function* callee = library_.find_function(source.name());
    if (!callee) throw Lost();
    const int depth = depth_;
    try {
      results.push_back(body(*callee, std::move(inputs)));
    } catch (const Lost&) {
      // A check that cannot be evaluated is skipped.
      if (source.output()->type()->kind() != ops::TypeKind::kNone) throw;
      depth_ = depth;
    }
  } else {
    results = node(source, std::move(inputs));
  }
  for (size_t i = 0; i < source.outputs().size() && i < results.size(); ++i) {
    places[static_cast<size_t>(source.output(i)->id())] = std::move(results[i]);
  }
}

void FunctionWalk::if_node(Places& places, const Node& node) {
  const Known& condition = places[static_cast<size_t>(node.input()->id())];
  if (!condition.value) throw Lost();
  const Block& taken = *node.blocks()[condition.value->to_bool() ? 0 : 1];
  block(places, taken);
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    places[static_cast<size_t>(node.output(i)->id())] = places[static_cast<size_t>(taken.outputs()[i]->id())];
  }
}

void FunctionWalk::loop(Places& places, const Node& node) {
  const auto at = [&](const GraphValue* value) -> Known& { return places[static_cast<size_t>(value->id())]; };
  const Block& body = *node.blocks().front();
  const Known& trips = at(node.input(0));
  Known goes_on = at(node.input(1));
  std::vector<Known> carried;
  for (size_t i = 2; i < node.inputs().size(); ++i) carried.push_back(at(node.input(i)));
  for (int64_t round = 0;; ++round) {
    count_step();
    if (!trips.value || !goes_on.value) throw Lost();
    if (round >= trips.value->to_int() || !goes_on.value->to_bool()) break;
    at(body.inputs()[0]) = {Value(round)};
    for (size_t i = 0; i < carried.size(); ++i) at(body.inputs()[i + 1]) = carried[i];
    block(places, body);
    goes_on = at(body.outputs()[0]);
    for (size_t i = 0; i < carried.size(); ++i) carried[i] = at(body.outputs()[i + 1]);
  }
  for (size_t i = 0; i < carried.size(); ++i) at(node.output(i)) = carried[i];
}

std::vector<Known> FunctionWalk::node(const Node& source, std::vector<Known> inputs) {
  switch (source.kind()) {
    case NodeKind::kConstant: return {{source.constant()}};
    case NodeKind::kUncheckedCast: return inputs;
    case NodeKind::kUninitialized: return {Known()};
    case NodeKind::kOp: return op(source, inputs);
    case NodeKind::kListConstruct: {
      std::vector<Value> items;
      for (const Known& input : inputs) {
        if (!input.value) return {{std::nullopt, true}};
        items.push_back(*input.value);
      }
      return {{Value(ops::make_list(source.output()->type()->element(), std::move(items)))}};
    }
    case NodeKind::kTupleConstruct:
      return {{std::nullopt, true, std::make_shared<const std::vector<Known>>(std::move(inputs))}};
    case NodeKind::kTupleUnpack:
      if (!inputs[0].items) return std::vector<Known>(source.outputs().size());
      return *inputs[0].items;
    case NodeKind::kTupleIndex:
      if (!inputs[0].items) return {Known()};
      return {inputs[0].items->at(static_cast<size_t>(source.index()))};
    case NodeKind::kListUnpack: {
      if (!inputs[0].value) return std::vector<Known>(source.outputs().size());
      const auto& items = inputs[0].value->to_list()->items;
      if (items.size() != source.outputs().size()) {
        fail(ErrorCode::kDataLoss, "has ", source.outputs().size(), " outputs, but gives ", items.size());
      }
      std::vector<Known> results;
      for (const Value& item : items) results.push_back({item});
      return results;
    }
    default: throw Lost();
  }
}

std::vector<Known> FunctionWalk::op(const Node& source, const std::vector<Known>& inputs) {
  static const ops::Op& raise = ops::get_op("prim::RaiseException");
  static const ops::Op& is = ops::get_op("aten::__is__");
  static const ops::Op& is_not = ops::get_op("aten::__isnot__");
  const ops::Op& op = *source.op();
  if (&op == &raise) {
    if (!inputs[0].value || !inputs[0].value->is_string()) throw Lost();
    fail(ErrorCode::kDataLoss, inputs[0].value->to_string());
  }
  if ((&op == &is || &op == &is_not) && !inputs[0].value && inputs[0].is_given && inputs[1].value &&
      inputs[1].value->is_none()) {
    return {{Value(&op == &is_not)}};
  }
  std::vector<Value> arguments;
  arguments.reserve(inputs.size());
  const bool are_known = std::ranges::all_of(inputs, [](const Known& input) { return input.value.has_value(); });
  if (!are_known && op.schema.is_mutating()) throw Lost();
  std::vector<Known> unknown;
  for (const GraphValue* output : source.outputs()) {
    unknown.push_back({std::nullopt, output->type()->kind() != ops::TypeKind::kOptional});
  }
  if (!are_known) return unknown;
  for (const Known& input : inputs) arguments.push_back(*input.value);
  try {
    std::vector<Value> results = run(op, arguments);
    for (size_t i = 0; i < results.size() && i < unknown.size(); ++i) {
      unknown[i].value = without_elements(std::move(results[i]));
    }
    return unknown;
  } catch (const Error& error) {
    if (is_about_arguments(error)) {
      fail(ErrorCode::kDataLoss, "for the shapes that the file declares: ", error.what());
    }
    if (op.schema.is_mutating()) throw Lost();
    return unknown;
  } catch (const std::bad_alloc&) {
    return unknown;
  }
}

}  // namespace tensord::jit::onnx
