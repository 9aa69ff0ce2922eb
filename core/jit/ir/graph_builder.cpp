#include "core/jit/ir/graph_builder.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/ops/registry.h"

namespace tensord::jit {

Node* GraphBuilder::add(Node* node) {
  node->set_location(location_);
  if (before_)
    node->insert_before(before_);
  else
    node->append_to(block_);
  return node;
}

Node* GraphBuilder::add(NodeKind kind, std::span<GraphValue* const> inputs) { return add(graph_.create(kind, inputs)); }

GraphValue* GraphBuilder::constant(ops::Value value, ops::TypePtr type) {
  return add(graph_.create_constant(std::move(value), std::move(type)))->output();
}

Node* GraphBuilder::call(const ops::Op& op, std::span<GraphValue* const> arguments) {
  Values all(arguments.begin(), arguments.end());
  for (size_t i = all.size(); i < op.schema.arguments.size(); ++i) {
    const ops::Argument& argument = op.schema.arguments[i];
    check(argument.default_value.has_value(), op.schema.full_name(), ": argument '", argument.name, "' is missing");
    const ops::Value& value = *argument.default_value;
    // Lists of the frontend are made at run time, as in a script. Passes insert constants before a node.
    if (value.is_list() && !before_) {
      Values items;
      for (const ops::Value& item : value.to_list()->items) items.push_back(constant(item));
      all.push_back(list(value.to_list()->element, items));
    } else {
      all.push_back(constant(value));
    }
  }
  return add(graph_.create(op, all));
}

GraphValue* GraphBuilder::op(std::string_view full_name, std::span<GraphValue* const> arguments) {
  Node* node = call(ops::get_op(full_name), arguments);
  return node->outputs().empty() ? nullptr : node->output();
}

GraphValue* GraphBuilder::op(std::string_view full_name, std::initializer_list<GraphValue*> arguments) {
  return op(full_name, std::span<GraphValue* const>(arguments.begin(), arguments.size()));
}

GraphValue* GraphBuilder::scalar_op(std::string_view name, std::initializer_list<GraphValue*> arguments) {
  const std::span<GraphValue* const> values(arguments.begin(), arguments.size());
  for (const ops::Op* candidate : ops::find_overloads(name)) {
    const auto takes = [](const ops::Argument& formal, const GraphValue* value) {
      return ops::same_type(formal.type, value->type());
    };
    if (std::ranges::equal(candidate->schema.arguments, values, takes)) return call(*candidate, values)->output();
  }
  std::string types;
  for (const GraphValue* value : values) types += concat(types.empty() ? "" : ", ", value->type()->str());
  fail(ErrorCode::kUnimplemented, name, " of (", types, ") is not supported");
}

GraphValue* GraphBuilder::list(ops::TypePtr element, std::span<GraphValue* const> items) {
  return add(NodeKind::kListConstruct, items)->add_output(ops::list_type(std::move(element)));
}

GraphValue* GraphBuilder::tuple(std::span<GraphValue* const> items, std::vector<std::string> names) {
  std::vector<ops::TypePtr> members;
  for (const GraphValue* item : items) members.push_back(item->type());
  ops::TypePtr type = names.empty() ? ops::tuple_type(std::move(members))
                                    : ops::named_tuple_type("__torch__.Output", std::move(names), std::move(members));
  return add(NodeKind::kTupleConstruct, items)->add_output(std::move(type));
}

void GraphBuilder::replace_value(GraphValue* value, Node* node) {
  value->set_name(node->output()->name());
  node->output()->replace_all_uses_with(value);
}

}  // namespace tensord::jit
