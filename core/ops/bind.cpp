#include <algorithm>

#include "core/ops/run.h"

namespace tensord::ops {
namespace {

Argument element_of(const Argument& argument) {
  Argument out;
  out.type = argument.type->element();
  return out;
}

bool is_scalar_tensor(const Value& value) { return value.is_tensor() && value.to_tensor().ndim() == 0; }

bool accepts_list(const Argument& argument, const Value& value) {
  const Argument element = element_of(argument);
  if (argument.fixed_list_size > 0 && accepts(element, value)) return true;
  if (!value.is_list() && !value.is_tuple()) return false;
  const auto& items = value.is_list() ? value.to_list()->items : value.to_tuple()->items;
  // A tuple of ints may be passed as int[]; other lists must be lists.
  if (value.is_tuple() && element.type->kind() != TypeKind::kInt) return false;
  return std::all_of(items.begin(), items.end(), [&](const Value& item) { return accepts(element, item); });
}

}  // namespace

bool accepts(const Argument& argument, const Value& value) {
  const Type& type = *argument.type;
  switch (type.kind()) {
    case TypeKind::kVar:
    case TypeKind::kAny: return true;
    case TypeKind::kInt:
      return value.is_int() || (is_scalar_tensor(value) && is_integral(value.to_tensor().dtype(), false));
    case TypeKind::kFloat: return value.is_float() || value.is_int() || is_scalar_tensor(value);
    case TypeKind::kComplex: return value.is_complex() || value.is_number() || is_scalar_tensor(value);
    case TypeKind::kNumber: return value.is_complex() || value.is_number() || is_scalar_tensor(value);
    case TypeKind::kDevice: return value.is_device() || value.is_string();
    case TypeKind::kOptional: {
      if (value.is_none()) return true;
      Argument inner = argument;
      inner.type = type.element();
      return accepts(inner, value);
    }
    case TypeKind::kList: return accepts_list(argument, value);
    case TypeKind::kDict: return value.is_dict();
    case TypeKind::kTuple: return value.is_tuple();
    case TypeKind::kFuture: return value.is_future();
    case TypeKind::kOpaque: return value.is_opaque();
    case TypeKind::kGenerator: return value.is_none();
    default: return is_instance(value, type);
  }
}

Value convert(const Argument& argument, const Value& value) {
  const Type& type = *argument.type;
  switch (type.kind()) {
    case TypeKind::kInt: return value.is_tensor() ? Value(value.to_tensor().item_int()) : value;
    case TypeKind::kFloat:
      if (value.is_int()) return static_cast<double>(value.to_int());
      return value.is_tensor() ? Value(value.to_tensor().item_double()) : value;
    case TypeKind::kComplex: return value.is_complex() ? value : Value(value.to_complex());
    case TypeKind::kNumber: return value.is_tensor() ? Value(value.to_scalar()) : value;
    case TypeKind::kDevice: return value.is_string() ? Value(value.to_device()) : value;
    case TypeKind::kOptional: {
      if (value.is_none()) return value;
      Argument inner = argument;
      inner.type = type.element();
      return convert(inner, value);
    }
    case TypeKind::kList: {
      const Argument element = element_of(argument);
      if (value.is_list()) {
        const bool converts = element.type->kind() == TypeKind::kFloat &&
                              std::any_of(value.to_list()->items.begin(), value.to_list()->items.end(),
                                          [](const Value& item) { return !item.is_float(); });
        if (!converts) return value;  // keeps the identity of the list
      }
      List list = make_list(element.type);
      if (value.is_list() || value.is_tuple()) {
        const auto& items = value.is_list() ? value.to_list()->items : value.to_tuple()->items;
        for (const Value& item : items) list->items.push_back(convert(element, item));
      } else {
        list->items.assign(static_cast<size_t>(argument.fixed_list_size), convert(element, value));
      }
      return list;
    }
    default: return value;
  }
}

std::vector<Value> bind(const Op& op, std::vector<Value> positional) {
  const auto& arguments = op.schema.arguments;
  if (op.schema.is_vararg) return positional;
  check(positional.size() <= arguments.size(), op.schema.full_name(), ": expected at most ", arguments.size(),
        " arguments but got ", positional.size());
  for (size_t i = 0; i < positional.size(); ++i) {
    check(accepts(arguments[i], positional[i]), op.schema.full_name(), ": expected a value of type ",
          arguments[i].type->str(), " for argument '", arguments[i].name, "' but got ", positional[i].tag_name());
    positional[i] = convert(arguments[i], positional[i]);
  }
  for (size_t i = positional.size(); i < arguments.size(); ++i) {
    check(arguments[i].default_value.has_value(), op.schema.full_name(), ": argument '", arguments[i].name,
          "' is missing");
    positional.push_back(*arguments[i].default_value);
  }
  return positional;
}

const Op& resolve(std::string_view name, std::span<const Value> values) {
  const auto candidates = find_overloads(name);
  if (candidates.empty()) fail(ErrorCode::kUnimplemented, "operator ", name, " is not supported");
  const auto matches = [&](const Op& op, bool exact) {
    const auto& arguments = op.schema.arguments;
    if (op.schema.is_vararg) return true;
    if (values.size() > arguments.size()) return false;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (i >= values.size()) {
        if (!arguments[i].default_value) return false;
      } else if (!accepts(arguments[i], values[i]) || (exact && arguments[i].type->kind() != TypeKind::kVar &&
                                                       !is_instance(values[i], *arguments[i].type))) {
        return false;
      }
    }
    return true;
  };
  for (const bool exact : {true, false}) {
    for (const Op* op : candidates) {
      if (matches(*op, exact)) return *op;
    }
  }
  std::string got, known;
  for (const Value& value : values) got += (got.empty() ? "" : ", ") + type_of(value)->str();
  for (const Op* op : candidates) known += "\n  " + op->schema.str();
  fail(ErrorCode::kInvalidArgument, name, ": no overload takes (", got, "); known are", known);
}

}  // namespace tensord::ops
