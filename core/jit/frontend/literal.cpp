#include <cmath>
#include <limits>

#include "core/jit/frontend/declarations.h"

namespace tensord::jit {

using ops::TypeKind;
using ops::TypePtr;
using ops::Value;

namespace {

TypePtr type_of_given(const TypePtr& type) {
  return type && type->kind() == TypeKind::kOptional ? type->element() : type;
}

bool is_call_of(const SourceTree& tree, const Expr& expr, std::string_view callee) {
  const Expr& base = *expr.items[0];
  return tree.source.text().substr(base.begin, base.end - base.begin) == callee;
}

}  // namespace

std::optional<Value> Declarations::literal(const SourceTree& tree, const Expr& expr, const TypePtr& type) {
  const TypePtr wanted = type_of_given(type);
  switch (expr.kind) {
    case ExprKind::kInt:
      if (wanted && wanted->kind() == TypeKind::kFloat) return static_cast<double>(expr.int_value);
      return expr.int_value;
    case ExprKind::kFloat: return expr.float_value;
    case ExprKind::kString:
      if (wanted && wanted->kind() == TypeKind::kDevice) return Value(Value(std::string(expr.text)).to_device());
      return Value(std::string(expr.text));
    case ExprKind::kTrue: return Value(true);
    case ExprKind::kFalse: return Value(false);
    case ExprKind::kNone: return Value();
    case ExprKind::kTuple:
    case ExprKind::kList:
    case ExprKind::kDict: return sequence_literal(tree, expr, wanted);
    case ExprKind::kUnary: {
      if (expr.text != "-") return std::nullopt;
      std::optional<Value> operand = literal(tree, *expr.items[0], type);
      if (!operand || !operand->is_float()) return std::nullopt;
      return -operand->to_float();
    }
    case ExprKind::kName:
    case ExprKind::kAttribute: return named_literal(tree, expr);
    case ExprKind::kCall:
      if (expr.items.size() == 3 && is_call_of(tree, expr, "annotate")) {
        return literal(tree, *expr.items[2], parse_type(tree, *expr.items[1]));
      }
      if (expr.items.size() == 2 && is_call_of(tree, expr, "torch.device") &&
          expr.items[1]->kind == ExprKind::kString) {
        return Value(Value(std::string(expr.items[1]->text)).to_device());
      }
      return std::nullopt;
    default: return std::nullopt;
  }
}

std::optional<Value> Declarations::sequence_literal(const SourceTree& tree, const Expr& expr, const TypePtr& type) {
  const bool is_dict = expr.kind == ExprKind::kDict;
  const TypeKind kind = is_dict ? TypeKind::kDict : expr.kind == ExprKind::kList ? TypeKind::kList : TypeKind::kTuple;
  const bool is_typed = type && type->kind() == kind;
  std::vector<Value> items;
  for (size_t i = 0; i < expr.items.size(); ++i) {
    TypePtr wanted;
    if (is_typed && kind == TypeKind::kTuple && i < type->contained().size()) wanted = type->contained()[i];
    if (is_typed && kind == TypeKind::kList) wanted = type->element();
    if (is_typed && is_dict) wanted = type->contained()[i % 2];
    std::optional<Value> item = literal(tree, *expr.items[i], wanted);
    if (!item) return std::nullopt;
    items.push_back(std::move(*item));
  }
  if (kind == TypeKind::kTuple)
    return Value(
        make_intrusive<ops::TupleObject>(std::move(items), is_typed && !type->name().empty() ? type : nullptr));
  if (!is_dict) {
    const TypePtr element = is_typed        ? type->element()
                            : items.empty() ? ops::tensor_type()
                                            : ops::type_of(items.front());
    return Value(ops::make_list(element, std::move(items)));
  }
  const TypePtr key = is_typed ? type->contained()[0] : items.empty() ? ops::string_type() : ops::type_of(items[0]);
  const TypePtr value = is_typed ? type->contained()[1] : items.empty() ? ops::tensor_type() : ops::type_of(items[1]);
  auto dict = make_intrusive<ops::DictObject>(key, value);
  for (size_t i = 0; i < items.size(); i += 2) dict->set(items[i], items[i + 1]);
  return Value(std::move(dict));
}

std::optional<Value> Declarations::named_literal(const SourceTree& tree, const Expr& expr) {
  const std::string_view text = tree.source.text().substr(expr.begin, expr.end - expr.begin);
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text.starts_with("CONSTANTS.")) return constant(tree, expr, text.substr(10));
  const size_t dot = text.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const Symbol symbol = find_from(tree, text);
  if (symbol.kind != Symbol::Kind::kField || !is_enum(*symbol.class_def)) return std::nullopt;
  return enum_member(symbol.class_name, text.substr(dot + 1));
}

}  // namespace tensord::jit
