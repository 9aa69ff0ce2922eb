#include "core/jit/runtime/arguments.h"

#include "core/base/error.h"

namespace tensord::jit {

using ops::TypeKind;
using ops::TypePtr;
using ops::Value;

namespace {

[[noreturn]] void fail_type(const Value& value, const TypePtr& type, const std::string& what) {
  fail(ErrorCode::kInvalidArgument, what, ": expected ", type->str(), " but got ", ops::type_of(value)->str());
}

const std::vector<Value>& items_of(const Value& value) {
  return value.is_list() ? value.to_list()->items : value.to_tuple()->items;
}

// Returns the coerced items; `*changed` tells whether any of them is a different value.
std::vector<Value> coerce_items(const std::vector<Value>& items, const TypePtr& type, const std::string& what,
                                bool* changed) {
  std::vector<Value> out;
  out.reserve(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    out.push_back(coerce(items[i], type, what + "[" + std::to_string(i) + "]"));
    *changed = *changed || !out.back().is_same(items[i]);
  }
  return out;
}

Value coerce_list(const Value& value, const TypePtr& type, const std::string& what) {
  if (!value.is_list() && !value.is_tuple()) fail_type(value, type, what);
  bool changed = value.is_tuple() || !ops::same_type(value.to_list()->element, type->element());
  std::vector<Value> items = coerce_items(items_of(value), type->element(), what, &changed);
  return changed ? Value(ops::make_list(type->element(), std::move(items))) : value;
}

Value coerce_dict(const Value& value, const TypePtr& type, const std::string& what) {
  if (!value.is_dict()) fail_type(value, type, what);
  const ops::Dict& dict = value.to_dict();
  const TypePtr& key_type = type->contained()[0];
  const TypePtr& item_type = type->contained()[1];
  bool changed = !ops::same_type(dict->key, key_type) || !ops::same_type(dict->value, item_type);
  auto out = make_intrusive<ops::DictObject>(key_type, item_type);
  for (const auto& [key, item] : dict->items()) {
    Value fitting = coerce(item, item_type, what + "[...]");
    changed = changed || !fitting.is_same(item);
    out->set(coerce(key, key_type, what + ": key"), std::move(fitting));
  }
  return changed ? Value(std::move(out)) : value;
}

Value coerce_tuple(const Value& value, const TypePtr& type, const std::string& what) {
  if (!value.is_tuple() && !value.is_list()) fail_type(value, type, what);
  const std::vector<TypePtr>& members = type->contained();
  const std::vector<Value>& items = items_of(value);
  check(items.size() == members.size(), what, ": expected a tuple of ", members.size(), " items but got ",
        items.size());
  const bool is_named = !type->field_names().empty();
  bool changed = value.is_list() || (is_named && !value.to_tuple()->type);
  std::vector<Value> fitting;
  for (size_t i = 0; i < items.size(); ++i) {
    fitting.push_back(coerce(items[i], members[i], what + "[" + std::to_string(i) + "]"));
    changed = changed || !fitting.back().is_same(items[i]);
  }
  return changed ? Value(make_intrusive<ops::TupleObject>(std::move(fitting), is_named ? type : nullptr)) : value;
}

Value coerce_union(const Value& value, const TypePtr& type, const std::string& what) {
  for (const TypePtr& member : type->contained()) {
    if (ops::is_instance(value, *member)) return value;
  }
  for (const TypePtr& member : type->contained()) {
    try {
      return coerce(value, member, what);
    } catch (const Error&) {
      continue;
    }
  }
  fail_type(value, type, what);
}

bool fits_simple(const Value& value, TypeKind kind) {
  switch (kind) {
    case TypeKind::kTensor: return value.is_strided();
    case TypeKind::kInt: return value.is_int();
    case TypeKind::kFloat: return value.is_float();
    case TypeKind::kBool: return value.is_bool();
    case TypeKind::kNumber: return value.is_number();
    case TypeKind::kString: return value.is_string();
    case TypeKind::kNone: return value.is_none();
    case TypeKind::kDevice: return value.is_device();
    case TypeKind::kAny:
    case TypeKind::kVar: return true;
    default: return false;
  }
}

}  // namespace

Value coerce(const Value& value, const TypePtr& type, const std::string& what) {
  if (fits_simple(value, type->kind())) return value;
  switch (type->kind()) {
    case TypeKind::kFloat:
      if (value.is_int()) return Value(static_cast<double>(value.to_int()));
      break;
    case TypeKind::kDevice:
      if (value.is_string()) return Value(value.to_device());
      break;
    case TypeKind::kOptional: return value.is_none() ? value : coerce(value, type->element(), what);
    case TypeKind::kUnion: return coerce_union(value, type, what);
    case TypeKind::kList: return coerce_list(value, type, what);
    case TypeKind::kDict: return coerce_dict(value, type, what);
    case TypeKind::kTuple: return coerce_tuple(value, type, what);
    case TypeKind::kInterface:
      if (value.is_object()) return value;
      break;
    default:
      if (ops::is_instance(value, *type)) return value;
  }
  fail_type(value, type, what);
}

void bind_arguments(const ops::Schema& schema, std::span<const Value> arguments, std::vector<Value>& out) {
  const size_t count = schema.arguments.size();
  check(arguments.size() <= count, schema.name, ": expected at most ", count, " arguments but got ", arguments.size());
  for (size_t i = 0; i < count; ++i) {
    const ops::Argument& formal = schema.arguments[i];
    if (i >= arguments.size()) {
      check(formal.default_value.has_value(), schema.name, ": missing value for argument '", formal.name, "' of type ",
            formal.type->str());
      const Value& value = *formal.default_value;
      // The script may modify the list, so the default is copied.
      out.push_back(value.is_list() ? Value(ops::make_list(value.to_list()->element, value.to_list()->items)) : value);
    } else if (fits_simple(arguments[i], formal.type->kind())) {
      out.push_back(arguments[i]);
    } else {
      out.push_back(coerce(arguments[i], formal.type, schema.name + ": argument '" + formal.name + "'"));
    }
  }
}

}  // namespace tensord::jit
