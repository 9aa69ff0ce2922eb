#include <charconv>
#include <complex>
#include <limits>

#include "core/jit/frontend/function_emitter.h"
#include "core/tensor/dtype_names.h"

namespace tensord::jit {

using ops::TypeKind;
using ops::TypePtr;

namespace {

const TypePtr& without_optional(const TypePtr& type) {
  return type && type->kind() == TypeKind::kOptional ? type->element() : type;
}

}  // namespace

Binding FunctionEmitter::expression(const Expr& expr, const TypePtr& hint) {
  place_ = expr.begin;
  if (raised_) return Binding::of(unreachable());
  switch (expr.kind) {
    case ExprKind::kName: return name(expr);
    case ExprKind::kInt: return Binding::of(constant(expr.int_value));
    case ExprKind::kFloat: return Binding::of(constant(expr.float_value));
    case ExprKind::kComplex: return Binding::of(constant(std::complex<double>(0, expr.float_value)));
    case ExprKind::kString: return Binding::of(constant(std::string(expr.text)));
    case ExprKind::kTrue: return Binding::of(constant(true));
    case ExprKind::kFalse: return Binding::of(constant(false));
    case ExprKind::kNone: return Binding::of(none());
    case ExprKind::kEllipsis: fail(expr, "'...' can only be used inside of a subscript");
    case ExprKind::kTuple: return Binding::of(tuple(expr, hint));
    case ExprKind::kList: return Binding::of(list(expr, hint));
    case ExprKind::kDict: return Binding::of(dict(expr, hint));
    case ExprKind::kAttribute: return attribute(expr);
    case ExprKind::kSubscript: {
      GraphValue* base = value(*expr.items[0]);
      if (raised_) return Binding::of(unreachable());
      const ops::ClassType* type = declarations_.class_of(base->type());
      if (type && type->is_module()) return Binding::of(module_item(base, value(*expr.items[1]), expr, hint));
      if (has_slice(*expr.items[1])) return Binding::of(sliced(base, *expr.items[1], expr));
      return Binding::of(index_value(base, value(*expr.items[1]), expr));
    }
    case ExprKind::kSlice: fail(expr, "a slice can only be used inside of a subscript");
    case ExprKind::kCall: return call(expr, hint);
    case ExprKind::kUnary: return unary(expr);
    case ExprKind::kBinary: return binary(expr);
    case ExprKind::kAnd:
    case ExprKind::kOr: {
      GraphValue* left = condition(*expr.items[0]);
      const auto right = [&] {
        refine(*expr.items[0], expr.kind == ExprKind::kAnd);
        return condition(*expr.items[1]);
      };
      if (expr.kind == ExprKind::kAnd) return Binding::of(choose(expr, left, right, [&] { return constant(false); }));
      return Binding::of(choose(
          expr, left, [&] { return constant(true); }, right));
    }
    case ExprKind::kIfElse: {
      const auto side = [&](size_t i, bool is_true) {
        refine(*expr.items[1], is_true);
        return value(*expr.items[i], hint);
      };
      return Binding::of(choose(
          expr, condition(*expr.items[1]), [&] { return side(0, true); }, [&] { return side(2, false); }));
    }
  }
  fail(expr, "this is not an expression");
}

GraphValue* FunctionEmitter::choose(const Expr& at, GraphValue* test, const std::function<GraphValue*()>& on_true,
                                    const std::function<GraphValue*()>& on_false) {
  Node* node = add(graph_->create(NodeKind::kIf, Values{test}));
  GraphValue *left = nullptr, *right = nullptr;
  Branch then_branch = branch(node, [&](Branch&) { left = on_true(); });
  Branch else_branch = branch(node, [&](Branch&) { right = on_false(); });
  TypePtr type = ops::unify(left->type(), right->type());
  if (!type) fail(at, "the two values have different types: " + left->type()->str() + " and " + right->type()->str());
  then_branch.block->add_output(left);
  else_branch.block->add_output(right);
  return node->add_output(std::move(type));
}

// ---- names

Binding FunctionEmitter::name(const Expr& expr) {
  if (const Binding* binding = environment_.find(expr.text)) return *binding;
  if (expr.text == "inf") return Binding::of(constant(std::numeric_limits<double>::infinity()));
  if (expr.text == "nan") return Binding::of(constant(std::numeric_limits<double>::quiet_NaN()));
  if (is_builtin(expr.text)) return Binding::of(Binding::Kind::kBuiltin, std::string(expr.text));
  const Symbol symbol = declarations_.find_from(tree_, expr.text);
  if (symbol.kind == Symbol::Kind::kNone) fail(expr, "name '" + std::string(expr.text) + "' is not defined");
  return symbol_binding(expr, symbol, std::string(expr.text));
}

std::string FunctionEmitter::static_path(const Expr& expr) const {
  if (expr.kind == ExprKind::kName) return environment_.find(expr.text) ? "" : std::string(expr.text);
  if (expr.kind != ExprKind::kAttribute) return {};
  std::string base = static_path(*expr.items[0]);
  return base.empty() ? base : base + "." + std::string(expr.text);
}

Binding FunctionEmitter::symbol_binding(const Expr& expr, const Symbol& symbol, const std::string& path) {
  switch (symbol.kind) {
    case Symbol::Kind::kFunction: {
      // The path may be relative to this file.
      const std::string full = declarations_.find(path).function == symbol.function
                                   ? path
                                   : declarations_.qualified_name(*symbol.tree, symbol.function->name);
      return Binding::of(Binding::Kind::kFunction, full);
    }
    case Symbol::Kind::kMethod:
      return Binding::of(Binding::Kind::kFunction, symbol.class_name + "." + std::string(symbol.function->name));
    case Symbol::Kind::kClass: return Binding::of(Binding::Kind::kClass, symbol.class_name);
    case Symbol::Kind::kField: {
      if (Declarations::is_enum(*symbol.class_def)) {
        // Each use makes a new object, as in libtorch: `c is Color.RED` is false, `c == Color.RED` compares the values.
        if (auto member = declarations_.enum_member(symbol.class_name, symbol.field->name)) {
          const ops::EnumObject& known = *member->to_enum();
          return Binding::of(constant(ops::Value(make_intrusive<ops::EnumObject>(known.type, known.name, known.value)),
                                      declarations_.find_type(symbol.class_name)));
        }
      }
      if (symbol.field->value) {
        const TypePtr type =
            symbol.field->annotation ? declarations_.parse_type(*symbol.tree, *symbol.field->annotation) : nullptr;
        if (auto known = declarations_.literal(*symbol.tree, *symbol.field->value, type))
          return Binding::of(materialize(*known, type));
      }
      fail(expr, "'" + path + "' is not a constant");
    }
    case Symbol::Kind::kNone: break;
  }
  fail(expr, "name '" + path + "' is not defined");
}

Binding FunctionEmitter::static_binding(const Expr& expr, const std::string& path) {
  const size_t dot = path.rfind('.');
  const std::string_view last = std::string_view(path).substr(dot + 1);
  if (path.starts_with("__torch__.")) {
    if (last == "__new__") return Binding::of(Binding::Kind::kNew, path.substr(0, dot));
    return symbol_binding(expr, declarations_.find_from(tree_, path), path);
  }
  if (path.starts_with("CONSTANTS.")) {
    const ops::Value& known = declarations_.constant(tree_, expr, std::string_view(path).substr(10));
    return Binding::of(known.is_list() || known.is_dict() || known.is_tuple() ? materialize(known, nullptr)
                                                                              : constant(known));
  }
  if (path.starts_with("ops.")) {
    const std::string rest = path.substr(4);
    const size_t split = rest.find('.');
    if (split == std::string::npos || rest.find('.', split + 1) != std::string::npos)
      fail(expr, "'" + path + "' is not an operator");
    return Binding::of(Binding::Kind::kOperator, rest.substr(0, split) + "::" + rest.substr(split + 1));
  }
  for (const std::string_view prefix :
       {"torch.nn.functional.", "torch.autograd.", "torch.Tensor.", "torch.", "math.", "F."}) {
    if (!path.starts_with(prefix)) continue;
    if (prefix == "math." && last == "inf") return Binding::of(constant(std::numeric_limits<double>::infinity()));
    if (const auto dtype = prefix == "torch." ? dtype_of_torch_name(last) : std::nullopt)
      return Binding::of(constant(*dtype));
    if (prefix == "math." && last == "pi") return Binding::of(constant(3.141592653589793));
    return Binding::of(Binding::Kind::kOperator, "aten::" + path.substr(prefix.size()));
  }
  const Symbol symbol = declarations_.find_from(tree_, path);
  if (symbol.kind == Symbol::Kind::kNone) fail(expr, "name '" + path + "' is not defined");
  return symbol_binding(expr, symbol, path);
}

// ---- attributes

Binding FunctionEmitter::attribute(const Expr& expr) {
  const std::string path = static_path(expr);
  if (!path.empty()) {
    // Color.RED.value: only the path without its last part names a value.
    const Expr& base = *expr.items[0];
    if (base.kind == ExprKind::kAttribute && path.starts_with("__torch__.") && expr.text != "__new__" &&
        declarations_.find(path).kind == Symbol::Kind::kNone &&
        declarations_.find(static_path(base)).kind == Symbol::Kind::kField) {
      return attribute_of(value(base), expr.text, expr);
    }
    return static_binding(expr, path);
  }
  GraphValue* object = value(*expr.items[0]);
  return raised_ ? Binding::of(unreachable()) : attribute_of(object, expr.text, expr);
}

Binding FunctionEmitter::attribute_of(GraphValue* object, std::string_view name, const Expr& at) {
  const TypePtr& type = object->type();
  switch (type->kind()) {
    case TypeKind::kClass:
      if (GraphValue* found = class_attribute(object, name, at)) return Binding::of(found);
      return Binding::of(Binding::Kind::kMethod, std::string(name), object);
    case TypeKind::kEnum: return Binding::of(enum_attribute(object, name, at));
    case TypeKind::kTuple:
      for (size_t i = 0; i < type->field_names().size(); ++i) {
        if (type->field_names()[i] == name) return Binding::of(tuple_item(object, static_cast<int64_t>(i), at));
      }
      fail(at, concat("a value of type ", type->str(), " has no field '", name, "'"));
    case TypeKind::kTensor: {
      if (name == "shape") return call_operator("aten::size", {{object}, {}}, at);
      if (name == "T") return call_operator("aten::numpy_T", {{object}, {}}, at);
      for (const std::string_view property : {"dtype", "device", "layout", "is_cuda", "requires_grad", "grad", "data",
                                              "is_sparse", "is_quantized", "is_nested"}) {
        if (name == property) return call_operator("prim::" + std::string(name), {{object}, {}}, at);
      }
      break;
    }
    case TypeKind::kDevice:
      if (name == "type" || name == "index") return call_operator("prim::" + std::string(name), {{object}, {}}, at);
      break;
    default: break;
  }
  return Binding::of(Binding::Kind::kMethod, std::string(name), object);
}

// Null if the class has no such attribute or constant.
GraphValue* FunctionEmitter::class_attribute(GraphValue* object, std::string_view name, const Expr& at) {
  const ops::ClassType* type = declarations_.class_of(object->type());
  if (const int index = type->find_attribute(name); index >= 0) {
    place_ = at.begin;
    TypePtr attribute_type = type->attributes()[static_cast<size_t>(index)].type;
    if (attribute_type->kind() == TypeKind::kClass) {
      if (TypePtr full = declarations_.find_type(attribute_type->name())) attribute_type = std::move(full);
    }
    return add(NodeKind::kGetAttr, Values{object}, std::move(attribute_type), std::string(name));
  }
  const Symbol symbol = declarations_.find(type->name());
  const FieldDef* field = symbol.class_def ? symbol.class_def->find_field(name) : nullptr;
  if (!field || !field->value) return nullptr;
  const TypePtr field_type = field->annotation ? declarations_.parse_type(*symbol.tree, *field->annotation) : nullptr;
  const auto known = declarations_.literal(*symbol.tree, *field->value, field_type);
  if (!known) symbol.tree->source.fail(field->begin, "the value of a class constant must be a literal");
  return materialize(*known, field_type);
}

GraphValue* FunctionEmitter::enum_attribute(GraphValue* object, std::string_view name, const Expr& at) {
  if (name != "value" && name != "name") fail(at, concat("an enum has no attribute '", name, "'"));
  if (const ops::Value* known = object->constant(); known && known->is_enum()) {
    return name == "value" ? constant(known->to_enum()->value) : constant(known->to_enum()->name);
  }
  if (name == "name") return op_value("prim::EnumName", Values{object});
  const TypePtr& value_type = object->type()->element();
  const std::string op = "prim::EnumValue." + value_type->str();
  return op_value(op.c_str(), Values{object});
}

// ---- subscripts

GraphValue* FunctionEmitter::tuple_item(GraphValue* tuple, int64_t index, const Expr& at) {
  const auto& members = tuple->type()->contained();
  const auto count = static_cast<int64_t>(members.size());
  if (index < -count || index >= count)
    fail(at, concat("tuple index ", index, " is out of range for ", tuple->type()->str()));
  if (index < 0) index += count;
  GraphValue* item = add(NodeKind::kTupleIndex, Values{tuple}, members[static_cast<size_t>(index)]);
  item->node()->set_index(index);
  return item;
}

GraphValue* FunctionEmitter::index_value(GraphValue* base, GraphValue* index, const Expr& at) {
  if (raised_) return unreachable();
  switch (base->type()->kind()) {
    case TypeKind::kTuple: {
      const ops::Value* known = index->constant();
      if (known && known->is_int()) return tuple_item(base, known->to_int(), at);
      // An index that is known only at run time requires all members to have one type.
      TypePtr element;
      for (const TypePtr& member : base->type()->contained()) element = element ? ops::unify(element, member) : member;
      if (!element) fail(at, "a tuple of different types needs a constant index");
      base = convert(base, ops::list_type(element), Conversion::kTupleToList, 0);
      break;
    }
    case TypeKind::kClass:
    case TypeKind::kInterface: return call_method(base, "__getitem__", {{index}, {}}, at);
    case TypeKind::kTensor:
      if (index->type()->kind() == TypeKind::kTensor) {
        GraphValue* indices = add(NodeKind::kListConstruct, Values{index}, ops::list_type(ops::tensor_type()));
        return as_value(call_operator("aten::index", {{base, indices}, {}}, at), at);
      }
      return as_value(call_operator("aten::select", {{base, constant(int64_t{0}), index}, {}}, at), at);
    default: break;
  }
  return as_value(call_operator("aten::__getitem__", {{base, index}, {}}, at), at);
}

// A module of a module list. A constant index becomes an attribute. Any other index becomes a chain of branches over
// the modules; the annotation gives their common type.
GraphValue* FunctionEmitter::module_item(GraphValue* modules, GraphValue* index, const Expr& at, const TypePtr& hint) {
  const ops::ClassType& type = *declarations_.class_of(modules->type());
  if (const ops::Value* key = index->constant(); key && (key->is_string() || key->is_int())) {
    int64_t position = key->is_int() ? key->to_int() : 0;
    if (position < 0) {
      for (const ops::Attribute& candidate : type.attributes())
        position += candidate.type->kind() == TypeKind::kClass ? 1 : 0;
    }
    GraphValue* item = class_attribute(modules, key->is_string() ? key->to_string() : std::to_string(position), at);
    if (!item) fail(at, "class " + type.name() + " has no such module");
    return item;
  }
  if (!hint || (hint->kind() != TypeKind::kInterface && hint->kind() != TypeKind::kClass)) {
    fail(at, "a module list with an index known at run time only needs an interface as annotation");
  }
  const bool is_by_name = index->type()->kind() == TypeKind::kString;
  std::vector<std::string> names;
  for (const ops::Attribute& candidate : type.attributes()) {
    if (candidate.type->kind() == TypeKind::kClass) names.push_back(candidate.name);
  }
  constexpr size_t kMaxModules = 100;
  if (names.size() > kMaxModules) {
    tree_.source.fail(ErrorCode::kUnimplemented, at.begin,
                      "a module list of this length with an index known at run time only is not supported");
  }
  if (!is_by_name && !names.empty()) {
    const Values size{constant(static_cast<int64_t>(names.size()))};
    const Values is_negative{index, constant(int64_t{0})};
    index = choose(
        at, op_value("aten::lt.int", is_negative),
        [&] {
          return op_value("aten::add.int", Values{index, size[0]});
        },
        [&] { return index; });
  }
  std::function<GraphValue*(size_t)> pick = [&](size_t i) -> GraphValue* {
    if (i == names.size()) {
      call_operator("prim::RaiseException", {{constant(is_by_name ? "KeyError" : "index out of range")}, {}}, at);
      return add(NodeKind::kUninitialized, {}, hint);
    }
    GraphValue* key = is_by_name ? constant(names[i]) : constant(static_cast<int64_t>(i));
    GraphValue* is_it = as_value(call_operator("aten::eq", {{index, key}, {}}, at), at);
    const auto found = [&] {
      return add(NodeKind::kUncheckedCast, Values{class_attribute(modules, names[i], at)}, hint);
    };
    return choose(at, is_it, found, [&] { return pick(i + 1); });
  };
  return pick(0);
}

// ---- containers

GraphValue* FunctionEmitter::list(const Expr& expr, const TypePtr& hint) {
  const TypePtr& wanted = without_optional(hint);
  TypePtr element = wanted && wanted->kind() == TypeKind::kList ? wanted->element() : nullptr;
  Values items;
  for (const Expr* item : expr.items) items.push_back(value(*item, element));
  if (raised_) return unreachable();
  place_ = expr.begin;
  if (element) {
    for (size_t i = 0; i < items.size(); ++i) items[i] = coerce(items[i], element, *expr.items[i], "list item");
  } else {
    for (size_t i = 0; i < items.size(); ++i) {
      TypePtr common = element ? ops::unify(element, items[i]->type()) : items[i]->type();
      if (!common)
        fail(*expr.items[i], "list items have different types: " + element->str() + " and " + items[i]->type()->str());
      element = std::move(common);
    }
  }
  return add(NodeKind::kListConstruct, items, ops::list_type(element ? element : ops::tensor_type()));
}

GraphValue* FunctionEmitter::tuple(const Expr& expr, const TypePtr& hint) {
  const TypePtr& wanted = without_optional(hint);
  const bool is_typed = wanted && wanted->kind() == TypeKind::kTuple && wanted->contained().size() == expr.items.size();
  Values items;
  for (size_t i = 0; i < expr.items.size(); ++i) {
    items.push_back(value(*expr.items[i], is_typed ? wanted->contained()[i] : nullptr));
  }
  place_ = expr.begin;
  if (!is_typed) return make_tuple(items);
  for (size_t i = 0; i < items.size(); ++i)
    items[i] = coerce(items[i], wanted->contained()[i], *expr.items[i], "tuple item");
  return make_tuple(items, wanted);
}

GraphValue* FunctionEmitter::dict(const Expr& expr, const TypePtr& hint) {
  const TypePtr& wanted = without_optional(hint);
  const bool is_typed = wanted && wanted->kind() == TypeKind::kDict;
  TypePtr types[2] = {is_typed ? wanted->contained()[0] : nullptr, is_typed ? wanted->contained()[1] : nullptr};
  Values items;
  for (size_t i = 0; i < expr.items.size(); ++i) {
    TypePtr& type = types[i % 2];
    GraphValue* item = value(*expr.items[i], is_typed ? type : nullptr);
    if (raised_) return unreachable();
    if (is_typed) {
      item = coerce(item, type, *expr.items[i], "dict item");
    } else {
      TypePtr common = type ? ops::unify(type, item->type()) : item->type();
      if (!common)
        fail(*expr.items[i], "dict items have different types: " + type->str() + " and " + item->type()->str());
      type = std::move(common);
    }
    items.push_back(item);
  }
  place_ = expr.begin;
  return add(NodeKind::kDictConstruct, items,
             ops::dict_type(types[0] ? types[0] : ops::string_type(), types[1] ? types[1] : ops::tensor_type()));
}

// ---- operators

Binding FunctionEmitter::unary(const Expr& expr) {
  if (expr.text == "not") return call_operator("aten::__not__", {{condition(*expr.items[0])}, {}}, expr);
  GraphValue* operand = value(*expr.items[0]);
  if (expr.text == "+") return Binding::of(operand);
  if (expr.text == "-") {
    if (const ops::Value* known = operand->constant(); known && known->is_float())
      return Binding::of(constant(-known->to_float()));
  }
  return call_operator(expr.text == "-" ? "aten::neg" : "aten::bitwise_not", {{operand}, {}}, expr);
}

Binding FunctionEmitter::binary(const Expr& expr) {
  static constexpr std::pair<std::string_view, const char*> kNames[] = {{"+", "aten::add"},
                                                                        {"-", "aten::sub"},
                                                                        {"*", "aten::mul"},
                                                                        {"/", "aten::div"},
                                                                        {"//", "aten::floordiv"},
                                                                        {"%", "aten::remainder"},
                                                                        {"**", "aten::pow"},
                                                                        {"@", "aten::matmul"},
                                                                        {"&", "aten::__and__"},
                                                                        {"|", "aten::__or__"},
                                                                        {"^", "aten::__xor__"},
                                                                        {"<<", "aten::__lshift__"},
                                                                        {">>", "aten::__rshift__"},
                                                                        {"<", "aten::lt"},
                                                                        {">", "aten::gt"},
                                                                        {"<=", "aten::le"},
                                                                        {">=", "aten::ge"},
                                                                        {"==", "aten::eq"},
                                                                        {"!=", "aten::ne"},
                                                                        {"is", "aten::__is__"},
                                                                        {"is not", "aten::__isnot__"},
                                                                        {"in", "aten::__contains__"},
                                                                        {"not in", "aten::__contains__"}};
  GraphValue* left = value(*expr.items[0]);
  GraphValue* right = value(*expr.items[1]);
  place_ = expr.begin;
  for (const auto& [text, op] : kNames) {
    if (text != expr.text) continue;
    std::string op_name = op;
    if (left->type()->kind() == TypeKind::kTensor && text == "//") op_name = "aten::floor_divide";
    if (text == "%" && left->type()->kind() == TypeKind::kString) op_name = "aten::percentFormat";
    if (text == "in" || text == "not in") std::swap(left, right);
    if (ops::is_subtype(left->type(), ops::number_type()) && right->type()->kind() == TypeKind::kTensor) {
      // For a number before a tensor, torch swaps them so that the tensor comes first.
      if (text == "+" || text == "*") std::swap(left, right);
      if (text == "-") return call_operator("aten::rsub", {{right, left}, {}}, expr);
      if (text == "/") {
        right = as_value(call_operator("aten::reciprocal", {{right}, {}}, expr), expr);
        return call_operator("aten::mul", {{right, left}, {}}, expr);
      }
    }
    Binding result = call_operator(op_name, {{left, right}, {}}, expr);
    return text == "not in" ? call_operator("aten::__not__", {{as_value(result, expr)}, {}}, expr) : result;
  }
  fail(expr, "operator '" + std::string(expr.text) + "' is not supported");
}

}  // namespace tensord::jit
