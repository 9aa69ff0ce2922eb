#include "core/jit/formats/trace/trace.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/jit/formats/graph_library.h"
#include "core/jit/formats/torchscript_export/export.h"

namespace tensord::jit {

using ops::TypeKind;
using ops::TypePtr;
using ops::Value;

Trace::Trace(std::vector<TracedWeight> weights, const std::vector<std::pair<std::string, Tensor>>& inputs)
    : weights_(std::move(weights)), inputs_(inputs) {
  for (const TracedWeight& weight : weights_) {
    tree_.add(weight.name, weight.tensor,
              weight.is_parameter ? ModuleTree::Kind::kParameter : ModuleTree::Kind::kBuffer);
    names_.emplace(weight.tensor.impl(), weight.name);  // of several names the first
  }
  graph_.block()->add_input(tree_.root_class(), "self");
  for (const auto& [name, tensor] : inputs_) {
    values_[tensor.impl()] = graph_.block()->add_input(ops::tensor_type(), name);
    input_sizes_.push_back(tensor.sizes());
  }
}

GraphValue* Trace::tensor_value(const Tensor& tensor) {
  if (!tensor.defined()) return builder_.none();
  if (const auto found = values_.find(tensor.impl()); found != values_.end()) return found->second;
  if (const auto found = names_.find(tensor.impl()); found != names_.end())
    return tree_.get(builder_.block(), graph_.inputs()[0], found->second);
  seen_.emplace_back(tensor);
  return builder_.constant(tensor);
}

GraphValue* Trace::value_of(const Value& value, const TypePtr& type) {
  if (value.is_tensor()) return tensor_value(value.to_tensor());
  const TypePtr inner = type->kind() == TypeKind::kOptional ? type->contained()[0] : type;
  if (value.is_list()) {
    const TypePtr element = inner->kind() == TypeKind::kList ? inner->contained()[0] : value.to_list()->element;
    std::vector<GraphValue*> items;
    for (const Value& item : value.to_list()->items) items.push_back(value_of(item, element));
    return builder_.list(element, items);
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
  if (value.is_tensor() && value.to_tensor().defined()) {
    const TensorImpl* impl = value.to_tensor().impl();
    if (!names_.contains(impl)) values_[impl] = output;  // a weight is read where it is used
  } else if (value.is_list() && value.to_list()->element->kind() == TypeKind::kTensor) {
    const auto& items = value.to_list()->items;
    Node* unpack = builder_.add(NodeKind::kListUnpack, std::span(&output, 1));
    for (const Value& item : items) returned(item, unpack->add_output(ops::tensor_type()));
  }
}

void Trace::called(const ops::Op& op, std::span<const Value> arguments, std::span<const Value> returns) {
  const auto& formals = op.schema.arguments;
  std::vector<GraphValue*> inputs;
  for (size_t i = 0; i < arguments.size() && i < formals.size(); ++i) {
    const bool is_written = formals[i].alias.is_write && arguments[i].is_tensor();
    if (is_written && !values_.contains(arguments[i].to_tensor().impl()) &&
        !names_.contains(arguments[i].to_tensor().impl())) {
      fail(ErrorCode::kUnimplemented, op.schema.full_name(),
           ": a traced function writes into a tensor that was made outside of it");
    }
    seen_.push_back(arguments[i]);
    inputs.push_back(value_of(arguments[i], formals[i].type));
  }
  Node* node = builder_.call(op, inputs);
  const auto outputs = node->outputs();
  const std::vector<GraphValue*> made(outputs.begin(), outputs.end());
  for (size_t i = 0; i < made.size() && i < returns.size(); ++i) returned(returns[i], made[i]);
}

void Trace::check_shapes() {
  Node* last = graph_.block()->last();
  for (size_t i = 0; i < inputs_.size(); ++i) {
    std::vector<GraphValue*> sizes;
    for (const int64_t size : input_sizes_[i]) sizes.push_back(builder_.constant(size));
    GraphValue* wanted = builder_.list(ops::int_type(), sizes);
    GraphValue* given = builder_.op("aten::size", {graph_.inputs()[i + 1]});
    GraphValue* is_same = builder_.op("aten::eq.int_list", {given, wanted});
    builder_.require(is_same, [&] {
      const std::string message = concat("input '", inputs_[i].first, "' must have the shape ", input_sizes_[i],
                                         ": the function that was traced reads sizes as numbers");
      builder_.op("prim::InvalidInput", {builder_.constant(message)});
    });
  }
  // They come first.
  Node* at = last ? last->next() : nullptr;
  Node* first = graph_.block()->first();
  while (at && last && first != at) {
    Node* next = at->next();
    at->move_before(first);
    at = next;
  }
}

void Trace::save(const std::string& path, const Value& result) {
  GraphValue* output = value_of(result, ops::type_of(result));
  if (are_sizes_read_) check_shapes();
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
