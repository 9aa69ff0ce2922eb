#include "core/jit/frontend/function_emitter.h"

#include "core/ops/registry.h"

namespace tensord::jit {

using ops::TypeKind;
using ops::TypePtr;
using ops::Value;

FunctionEmitter::FunctionEmitter(Declarations& declarations, const Signature& signature, ReturnTypeOf return_type_of)
    : declarations_(declarations),
      signature_(signature),
      tree_(*signature.symbol.tree),
      return_type_of_(std::move(return_type_of)),
      graph_(std::make_unique<Graph>()),
      block_(graph_->block()),
      place_(signature.symbol.function->begin) {
  if (signature.has_return_type) return_type_ = signature.schema.returns.front().type;
}

std::unique_ptr<Function> FunctionEmitter::emit() {
  const FunctionDef& def = *signature_.symbol.function;
  for (size_t i = 0; i < def.params.size(); ++i) {
    const std::string_view name = def.params[i].name;
    environment_.set(name,
                     Binding::of(graph_->block()->add_input(signature_.schema.arguments[i].type, std::string(name))));
  }
  GraphValue* result = body(def.body);
  if (!return_type_) return_type_ = result ? result->type() : ops::none_type();
  if (!result) result = add(NodeKind::kUninitialized, {}, return_type_);
  graph_->block()->add_output(result);
  auto function = std::make_unique<Function>();
  function->name = signature_.name;
  function->schema = signature_.schema;
  function->schema.returns.front().type = return_type_;
  function->graph = std::move(graph_);
  return function;
}

void FunctionEmitter::fail(const Expr& at, const std::string& message) const { tree_.source.fail(at.begin, message); }

Node* FunctionEmitter::add(Node* node) {
  node->set_location(tree_.source.location(place_));
  node->append_to(block_);
  return node;
}

GraphValue* FunctionEmitter::add(NodeKind kind, std::span<GraphValue* const> inputs, TypePtr type, std::string name) {
  Node* node = add(graph_->create(kind, inputs));
  node->set_name(std::move(name));
  return node->add_output(std::move(type));
}

GraphValue* FunctionEmitter::constant(Value value, TypePtr type) {
  return add(graph_->create_constant(std::move(value), std::move(type)))->output();
}

GraphValue* FunctionEmitter::op_value(const char* op, std::span<GraphValue* const> inputs) {
  return add(graph_->create(ops::get_op(op), inputs))->output();
}

GraphValue* FunctionEmitter::materialize(const Value& value, const TypePtr& type) {
  TypePtr own = type && type->kind() == TypeKind::kOptional && !value.is_none() ? type->element() : type;
  if (value.is_list()) {
    if (!own || own->kind() != TypeKind::kList) own = ops::type_of(value);
    Values items;
    for (const Value& item : value.to_list()->items) items.push_back(materialize(item, own->element()));
    return add(NodeKind::kListConstruct, items, own);
  }
  if (value.is_dict()) {
    if (!own || own->kind() != TypeKind::kDict) own = ops::type_of(value);
    Values items;
    for (const auto& [key, item] : value.to_dict()->items()) {
      items.push_back(materialize(key, own->contained()[0]));
      items.push_back(materialize(item, own->contained()[1]));
    }
    return add(NodeKind::kDictConstruct, items, own);
  }
  if (value.is_tuple()) {
    const auto& members = value.to_tuple()->items;
    const bool is_typed = own && own->kind() == TypeKind::kTuple && own->contained().size() == members.size();
    Values items;
    for (size_t i = 0; i < members.size(); ++i)
      items.push_back(materialize(members[i], is_typed ? own->contained()[i] : nullptr));
    return make_tuple(items, is_typed ? own : nullptr);
  }
  return constant(value, value.is_none() || !own || own->kind() == TypeKind::kNumber || own->kind() == TypeKind::kAny
                             ? nullptr
                             : own);
}

GraphValue* FunctionEmitter::make_tuple(std::span<GraphValue* const> items, TypePtr type) {
  if (!type) {
    std::vector<TypePtr> members;
    for (const GraphValue* item : items) members.push_back(item->type());
    type = ops::tuple_type(std::move(members));
  }
  return add(NodeKind::kTupleConstruct, items, std::move(type));
}

GraphValue* FunctionEmitter::convert(GraphValue* value, const TypePtr& type, Conversion conversion,
                                     int64_t fixed_list_size) {
  const TypePtr wanted = type->kind() == TypeKind::kOptional ? type->element() : type;
  switch (conversion) {
    case Conversion::kNone:
    case Conversion::kMismatch: return value;
    case Conversion::kListLiteral: {
      const auto items = value->node()->inputs();
      return add(value->node()->kind(), Values(items.begin(), items.end()), wanted);
    }
    case Conversion::kTupleToList: {
      Node* unpack = add(graph_->create(NodeKind::kTupleUnpack, Values{value}));
      for (const TypePtr& member : value->type()->contained()) unpack->add_output(member);
      return add(NodeKind::kListConstruct, unpack->outputs(), wanted);
    }
    case Conversion::kRepeat: {
      if (wanted->element()->kind() == TypeKind::kFloat && value->type()->kind() == TypeKind::kInt) {
        value = convert(value, wanted->element(), Conversion::kIntToFloat, 0);
      }
      return add(NodeKind::kListConstruct, Values(static_cast<size_t>(fixed_list_size), value), wanted);
    }
    case Conversion::kTensorToInt: return op_value("aten::IntImplicit", Values{value});
    case Conversion::kTensorToFloat: return op_value("aten::FloatImplicit", Values{value});
    case Conversion::kTensorToNumber: return op_value("aten::ScalarImplicit", Values{value});
    case Conversion::kIntToFloat:
      if (const Value* known = value->constant()) return constant(static_cast<double>(known->to_int()));
      return op_value("aten::Float.int", Values{value});
    case Conversion::kStringToDevice:
      if (const Value* known = value->constant()) return constant(known->to_device());
      return op_value("aten::device", Values{value});
  }
  return value;
}

GraphValue* FunctionEmitter::coerce(GraphValue* value, const TypePtr& type, const Expr& at, const char* what) {
  if (raised_) return add(NodeKind::kUninitialized, {}, type);
  TypeBindings bindings;
  const Conversion conversion = find_conversion(*type, *value, 0, bindings);
  if (conversion == Conversion::kMismatch) {
    fail(at, concat(what, ": expected a value of type ", type->str(), " but got ", value->type()->str()));
  }
  return convert(value, type, conversion, 0);
}

GraphValue* FunctionEmitter::as_value(const Binding& binding, const Expr& at) {
  switch (binding.kind) {
    case Binding::Kind::kValue: return binding.value;
    case Binding::Kind::kMany:
      if (binding.values.empty()) return none();
      return make_tuple(binding.values);
    case Binding::Kind::kUndefined: fail(at, binding.name);
    case Binding::Kind::kFunction: fail(at, "function " + binding.name + " can only be called");
    case Binding::Kind::kOperator: fail(at, "operator " + binding.name + " can only be called");
    case Binding::Kind::kClass: fail(at, "class " + binding.name + " can only be called");
    case Binding::Kind::kMethod:
    case Binding::Kind::kBuiltin:
    case Binding::Kind::kNew:
    case Binding::Kind::kClosure:
    case Binding::Kind::kNone: break;
  }
  fail(at, "this can only be called");
}

}  // namespace tensord::jit
