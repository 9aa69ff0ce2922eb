#include <algorithm>

#include "core/jit/frontend/function_emitter.h"
#include "core/ops/registry.h"

namespace tensord::jit {

using ops::TypeKind;
using ops::TypePtr;

namespace {

struct OperatorName {
  std::string_view name;
  const char* op;
};
// Python functions that are operators.
constexpr OperatorName kOperatorNames[] = {
    {"len", "aten::len"},       {"abs", "prim::abs"},       {"min", "prim::min"},     {"max", "prim::max"},
    {"sorted", "aten::sorted"}, {"print", "prim::Print"},   {"round", "aten::round"}, {"sum", "aten::sum"},
    {"ord", "aten::ord"},       {"chr", "aten::chr"},       {"hex", "aten::hex"},     {"oct", "aten::oct"},
    {"bin", "aten::bin"},       {"divmod", "aten::divmod"}, {"list", "aten::list"},   {"dict", "aten::dict"},
    {"pow", "aten::pow"},       {"hash", "aten::hash"},     {"any", "aten::any"},     {"all", "aten::all"}};
constexpr std::string_view kForms[] = {
    "annotate", "unchecked_cast", "uninitialized", "isinstance", "getattr", "fork",
    "int",      "float",          "bool",          "str",        "complex", "hasattr"};

const Expr& argument(const SourceTree& tree, const Expr& call, size_t i, size_t count) {
  if (call.items.size() != count + 1 || !call.keywords.empty())
    tree.source.fail(call.begin, concat("expected ", count, " arguments"));
  return *call.items[i + 1];
}

}  // namespace

bool FunctionEmitter::is_builtin(std::string_view name) const {
  return std::find(std::begin(kForms), std::end(kForms), name) != std::end(kForms) ||
         std::any_of(std::begin(kOperatorNames), std::end(kOperatorNames),
                     [&](const OperatorName& entry) { return entry.name == name; });
}

Binding FunctionEmitter::builtin(const std::string& name, const Expr& expr, const TypePtr& hint) {
  for (const OperatorName& entry : kOperatorNames) {
    if (entry.name == name) return call_operator(entry.op, arguments(expr), expr);
  }
  static constexpr OperatorName kCasts[] = {
      {"int", "aten::Int"}, {"float", "aten::Float"}, {"bool", "aten::Bool"}, {"str", "aten::str"}};
  for (const OperatorName& entry : kCasts) {
    if (entry.name == name) return Binding::of(cast(entry.op, value(argument(tree_, expr, 0, 1)), expr));
  }
  if (name == "fork") return Binding::of(fork(expr));
  if (name == "isinstance") return Binding::of(is_instance(expr));
  if (name == "complex") return call_operator("aten::Complex", arguments(expr), expr);
  if (name == "uninitialized") {
    return Binding::of(add(NodeKind::kUninitialized, {}, declarations_.parse_type(tree_, argument(tree_, expr, 0, 1))));
  }
  if (name == "getattr" || name == "hasattr") {
    const Expr& attribute_name = argument(tree_, expr, 1, 2);
    if (attribute_name.kind != ExprKind::kString) fail(attribute_name, "expected the name of an attribute in quotes");
    GraphValue* object = value(*expr.items[1]);
    if (name == "getattr") return attribute_of(object, attribute_name.text, expr);
    const ops::ClassType* type = declarations_.class_of(object->type());
    return Binding::of(constant(type && type->find_attribute(attribute_name.text) >= 0));
  }
  (void)hint;
  return special_form(name, expr);
}

// annotate(T, e) and unchecked_cast(T, e).
Binding FunctionEmitter::special_form(const std::string& name, const Expr& expr) {
  const Expr& inner_expr = argument(tree_, expr, 1, 2);
  const TypePtr type = declarations_.parse_type(tree_, *expr.items[1]);
  GraphValue* inner = value(inner_expr, type);
  place_ = expr.begin;
  if (name == "annotate") inner = coerce(inner, type, inner_expr, "annotate");
  if (ops::same_type(inner->type(), type)) return Binding::of(inner);
  if (inner->constant() && name == "annotate") return Binding::of(constant(*inner->constant(), type));
  return Binding::of(add(NodeKind::kUncheckedCast, Values{inner}, type));
}

GraphValue* FunctionEmitter::cast(const char* op, GraphValue* operand, const Expr& at) {
  static constexpr std::pair<std::string_view, TypeKind> kTargets[] = {{"aten::Int", TypeKind::kInt},
                                                                       {"aten::Float", TypeKind::kFloat},
                                                                       {"aten::Bool", TypeKind::kBool},
                                                                       {"aten::str", TypeKind::kString}};
  for (const auto& [name, kind] : kTargets) {
    if (name == op && operand->type()->kind() == kind) return operand;
  }
  return as_value(call_operator(op, {{operand}, {}}, at), at);
}

GraphValue* FunctionEmitter::is_instance(const Expr& expr) {
  const Expr& types_expr = argument(tree_, expr, 1, 2);
  GraphValue* subject = value(*expr.items[1]);
  std::vector<TypePtr> types;
  const auto add_type = [&](const Expr& type) {
    const std::string_view word = type.kind == ExprKind::kName ? type.text : std::string_view();
    // The spelling in hand-written code. Saved code has "list", "dict" and "tuple". See ops::is_instance.
    if (word == "List") {
      types.push_back(ops::list_type(ops::any_type()));
    } else if (word == "Dict") {
      types.push_back(ops::dict_type(ops::any_type(), ops::any_type()));
    } else if (word == "Tuple") {
      types.push_back(ops::named_tuple_type("tuple", {}, {}));
    } else {
      types.push_back(declarations_.parse_type(tree_, type));
    }
  };
  if (types_expr.kind == ExprKind::kTuple || types_expr.kind == ExprKind::kList) {
    for (const Expr* type : types_expr.items) add_type(*type);
  } else {
    add_type(types_expr);
  }
  place_ = expr.begin;
  GraphValue* result = add(NodeKind::kIsInstance, Values{subject}, ops::bool_type());
  result->node()->set_types(std::move(types));
  return result;
}

// ---- futures

GraphValue* FunctionEmitter::wait(GraphValue* future, const Expr& at) {
  if (future->type()->kind() != TypeKind::kFuture) fail(at, "wait: expected a future but got " + future->type()->str());
  return add(NodeKind::kWait, Values{future}, future->type()->element());
}

GraphValue* FunctionEmitter::fork(const Expr& expr) {
  const Binding callee = expression(argument(tree_, expr, 0, 1));
  if (callee.kind != Binding::Kind::kClosure) fail(expr, "fork takes a nested function");
  place_ = expr.begin;
  Node* node = add(graph_->create(NodeKind::kFork));
  Block* block = node->add_block();
  Environment::Scope scope;
  for (const auto& [name, binding] : callee.closure->captured) {
    Binding inside = binding;
    if (binding.kind == Binding::Kind::kValue) {
      node->add_input(binding.value);
      inside.value = block->add_input(binding.value->type(), std::string(name));
    }
    scope[name] = std::move(inside);
  }
  auto outer_scopes = environment_.replace({std::move(scope)});
  Block* outer_block = std::exchange(block_, block);
  const FunctionDef& def = *callee.closure->function;
  if (!def.params.empty()) fail(expr, "a forked function takes no parameters");
  TypePtr declared = def.return_annotation ? declarations_.parse_type(tree_, *def.return_annotation) : nullptr;
  TypePtr outer_return = std::exchange(return_type_, declared);
  const bool outer_raised = std::exchange(raised_, false);
  GraphValue* result = body(def.body);
  raised_ = outer_raised;
  if (!result) result = add(NodeKind::kUninitialized, {}, declared ? declared : ops::none_type());
  block->add_output(result);
  return_type_ = std::move(outer_return);
  block_ = outer_block;
  environment_.replace(std::move(outer_scopes));
  return node->add_output(ops::future_type(result->type()));
}

// ---- tolist

// The annotated type gives the number of dimensions and the element type: List[List[int]].
GraphValue* FunctionEmitter::to_list(GraphValue* tensor, const TypePtr& hint, const Expr& at) {
  if (!hint) fail(at, "tolist needs an annotation: annotate(List[int], x.tolist())");
  int64_t dims = 0;
  TypePtr element = hint;
  for (; element->kind() == TypeKind::kList; element = element->element()) ++dims;
  // libtorch's numbers of the element types.
  const TypeKind kind = element->kind();
  if (kind != TypeKind::kInt && kind != TypeKind::kFloat && kind != TypeKind::kBool) {
    fail(at, "tolist cannot give a value of type " + hint->str());
  }
  const int64_t number = kind == TypeKind::kInt ? 0 : kind == TypeKind::kFloat ? 1 : 3;
  if (!ops::find_op("prim::tolist"))
    tree_.source.fail(ErrorCode::kUnimplemented, at.begin, "operator prim::tolist is not supported");
  GraphValue* list = op_value("prim::tolist", Values{tensor, constant(dims), constant(number)});
  return add(NodeKind::kUncheckedCast, Values{list}, hint);
}

}  // namespace tensord::jit
