#include "core/jit/exporters/function_trace.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/jit/exporters/torchscript/export.h"
#include "core/jit/importers/graph_library.h"
#include "core/jit/ir/list_value.h"
#include "core/ops/run.h"
#include "ops/view.h"

namespace tensord::jit {

using ops::TypeKind;
using ops::TypePtr;
using ops::Value;

Trace::Trace(std::vector<TracedWeight> weights, const std::vector<std::pair<std::string, Tensor>>& inputs)
    : weights_(std::move(weights)), inputs_(inputs) {
  for (const TracedWeight& weight : weights_) {
    tree_.add(weight.name, weight.tensor,
              weight.is_parameter ? ModuleTree::Kind::kParameter : ModuleTree::Kind::kBuffer);
    names_.emplace(weight.tensor.impl(), weight.name);  // the first of several names
  }
  graph_.block()->add_input(tree_.root_class(), "self");
  for (const auto& [name, tensor] : inputs_) {
    values_[tensor.impl()] = graph_.block()->add_input(ops::tensor_type(), name);
  }
}

GraphValue* Trace::tensor_value(const Tensor& tensor) {
  if (!tensor.defined()) return builder_.none();
  if (const auto found = values_.find(tensor.impl()); found != values_.end()) return found->second;
  if (const auto found = names_.find(tensor.impl()); found != names_.end())
    return tree_.get(builder_.block(), graph_.inputs()[0], found->second);
  seen_.emplace_back(tensor);
  constant_memory_.insert(tensor.storage().get());
  return builder_.constant(tensor);
}

GraphValue* Trace::value_of(const Value& value, const TypePtr& type) {
  if (value.is_strided()) return tensor_value(value.to_tensor());
  if (value.is_list()) {
    return list_value(builder_, value, type,
                      [this](const Value& item, const TypePtr& element) { return value_of(item, element); });
  }
  if (value.is_tuple()) {
    std::vector<GraphValue*> items;
    for (const Value& item : value.to_tuple()->items) items.push_back(value_of(item, ops::type_of(item)));
    return builder_.tuple(items);
  }
  if (value.is_dict()) {
    std::vector<GraphValue*> items;
    for (const auto& [key, item] : value.to_dict()->items()) {
      items.push_back(value_of(key, ops::type_of(key)));
      items.push_back(value_of(item, ops::type_of(item)));
    }
    return builder_.add(NodeKind::kDictConstruct, items)->add_output(ops::type_of(value));
  }
  if (value.tag() == Value::Tag::kOpaque)
    fail(ErrorCode::kUnimplemented, "a generator of random numbers cannot be traced; use the default one");
  return builder_.constant(value);
}

void Trace::returned(const Value& value, GraphValue* output) {
  seen_.push_back(value);
  if (value.is_strided() && value.to_tensor().defined()) {
    const TensorImpl* impl = value.to_tensor().impl();
    if (!names_.contains(impl)) values_[impl] = output;  // a weight is read where it is used
  } else if (value.is_list() && value.to_list()->element->kind() == TypeKind::kTensor) {
    const auto& items = value.to_list()->items;
    Node* unpack = builder_.add(NodeKind::kListUnpack, std::span(&output, 1));
    for (const Value& item : items) returned(item, unpack->add_output(ops::tensor_type()));
  }
}

void Trace::check_written(const ops::Op& op, const Tensor& tensor) const {
  const TensorImpl* impl = tensor.impl();
  const bool is_known = values_.contains(impl) || names_.contains(impl);
  if (is_known && !constant_memory_.contains(tensor.storage().get())) return;
  fail(ErrorCode::kUnimplemented, op.schema.full_name(),
       ": a traced function writes into a tensor that was made outside of it");
}

namespace {

bool holds(const Value& value, const TensorImpl* impl) {
  if (value.is_strided()) return value.to_tensor().impl() == impl;
  return value.is_list() &&
         std::ranges::any_of(value.to_list()->items, [&](const Value& item) { return holds(item, impl); });
}

// The results, with new tensor objects where one is an argument, unless the operator wrote to it.
Value with_own_handles(const Value& value, std::span<const Value> arguments) {
  if (value.is_strided()) {
    const Tensor& tensor = value.to_tensor();
    const bool is_argument =
        std::ranges::any_of(arguments, [&](const Value& argument) { return holds(argument, tensor.impl()); });
    return is_argument ? Value(ops::alias(tensor)) : value;
  }
  if (!value.is_list() || value.to_list()->element->kind() != TypeKind::kTensor) return value;
  std::vector<Value> items;
  for (const Value& item : value.to_list()->items) items.push_back(with_own_handles(item, arguments));
  return ops::make_list(ops::tensor_type(), std::move(items));
}

bool has_tensors(const Value& value) {
  if (value.is_list()) return value.to_list()->element->kind() == TypeKind::kTensor;
  return value.is_strided() || value.is_none();
}

}  // namespace

bool reads_no_element(const ops::Op& op) {
  static const std::set<std::string, std::less<>> names = {
      "aten::stride",       "aten::is_contiguous", "aten::storage_offset", "aten::element_size",
      "aten::is_same_size", "aten::get_device",    "aten::is_conj",        "aten::is_neg"};
  return op.reads_only_shape || names.contains(op.name());
}

void Trace::after(const ops::Op& op, std::span<const Value> arguments, std::span<Value> returns) {
  const auto& formals = op.schema.arguments;
  std::vector<GraphValue*> inputs;
  for (size_t i = 0; i < arguments.size() && i < formals.size(); ++i) {
    seen_.push_back(arguments[i]);
    inputs.push_back(value_of(arguments[i], formals[i].type));
    if (!formals[i].alias.is_write || !arguments[i].is_strided()) continue;
    const Tensor& written = arguments[i].to_tensor();
    check_written(op, written);
    // Its shape may have changed.
    std::erase_if(guarded_, [&](const auto& guarded) { return guarded.first == written.impl(); });
  }
  Node* node = builder_.call(op, inputs);
  const auto outputs = node->outputs();
  const std::vector<GraphValue*> made(outputs.begin(), outputs.end());
  for (size_t i = 0; i < made.size() && i < returns.size(); ++i) {
    if (!op.schema.returns[i].alias.is_write) returns[i] = with_own_handles(returns[i], arguments);
    returned(returns[i], made[i]);
    if (!has_tensors(returns[i])) number_returned(op, returns[i], made[i]);
  }
}

void Trace::number_returned(const ops::Op& op, const Value& value, GraphValue* output) {
  if (!reads_no_element(op)) {
    are_values_read_ = true;
    return;
  }
  guard(output, value, concat(op.schema.full_name(), " must give what it gave to the function that was traced"));
}

void Trace::guard(GraphValue* given, const Value& wanted, const std::string& message) {
  GraphValue* is_same = nullptr;
  if (wanted.is_list()) {
    is_same = builder_.op("aten::eq.int_list", {given, value_of(wanted, ops::type_of(wanted))});
  } else if (wanted.is_int()) {
    is_same = builder_.op("aten::eq.int", {given, builder_.constant(wanted)});
  } else if (wanted.is_bool()) {
    is_same = wanted.to_bool() ? given : builder_.op("aten::__not__", {given});
  } else {
    return;  // a device: no numbers depend on it
  }
  builder_.require(is_same, [&] { builder_.op("prim::InvalidInput", {builder_.constant(message)}); });
}

void Trace::record_read(const Tensor& tensor, TensorRead what) {
  const auto found = values_.find(tensor.impl());
  // Weights and constants do not change.
  if (found == values_.end() || !guarded_.emplace(tensor.impl(), what).second) return;
  GraphValue* value = found->second;
  const auto input = std::ranges::find_if(inputs_, [&](const auto& one) { return one.second.is_same(tensor); });
  const std::string name =
      input == inputs_.end() ? "a tensor of the traced function" : concat("input '", input->first, "'");
  switch (what) {
    case TensorRead::kSizes:
      return guard(builder_.op("aten::size", {value}), ops::make_int_list(tensor.sizes()),
                   concat(name, " must have the shape ", tensor.sizes(),
                          ": the function that was traced reads sizes as numbers"));
    case TensorRead::kRank:
      return guard(builder_.op("aten::dim", {value}), Value(tensor.ndim()),
                   concat(name, " must have ", tensor.ndim(),
                          " dimensions: the function that was traced reads how many there are"));
    case TensorRead::kDType:
      return guard(
          builder_.op("prim::dtype", {value}), Value(tensor.dtype()),
          concat(name, " must be of ", name_of(tensor.dtype()), ": the function that was traced reads its dtype"));
    case TensorRead::kStrides:
      return guard(builder_.op("aten::stride", {value}), ops::make_int_list(tensor.strides()),
                   concat(name, " must have the strides ", tensor.strides(),
                          ": the function that was traced reads them as numbers"));
  }
}

void Trace::save(const std::string& path, const Value& result) {
  GraphValue* output = value_of(result, ops::type_of(result));
  graph_.block()->add_output(output);
  ops::Schema schema;
  schema.name = "forward";
  for (const auto& [name, tensor] : inputs_) {
    ops::Argument argument;
    argument.name = name;
    argument.type = ops::tensor_type();
    schema.arguments.push_back(std::move(argument));
  }
  GraphLibrary library;
  const ops::ObjectPtr object = tree_.finish(library);
  export_torchscript(path, object, {{"forward", &schema, &graph_}}, [this](const Tensor& tensor) {
    return std::ranges::any_of(weights_, [&](const TracedWeight& weight) {
      return weight.is_parameter && weight.requires_grad && weight.tensor.is_same(tensor);
    });
  });
}

}  // namespace tensord::jit
