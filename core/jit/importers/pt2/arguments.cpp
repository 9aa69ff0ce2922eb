// Converts arguments of nodes, which are unions in a program's JSON, to graph values.

#include "core/base/error.h"
#include "core/jit/importers/pt2/enums.h"
#include "core/jit/importers/pt2/graph_reader.h"

namespace tensord::jit::pt2 {

using ops::TypeKind;
using ops::Value;

namespace {

// The parameter's type without Optional; null if there is no parameter.
const ops::Type* wanted_type(const ops::Argument* formal) {
  if (!formal) return nullptr;
  const ops::Type& type = *formal->type;
  return type.kind() == TypeKind::kOptional ? type.element().get() : &type;
}

bool is_list_of(const ops::Type* type, TypeKind element) {
  return type && type->kind() == TypeKind::kList && type->element()->kind() == element;
}

}  // namespace

GraphValue* GraphReader::look_up(const std::string& name, const Scope& scope) const {
  const auto found = scope.find(name);
  if (found == scope.end()) fail(ErrorCode::kDataLoss, "'", name, "' is used before it is defined");
  return found->second;
}

// Converts a constant to the parameter's type: an int for a float parameter, or one number for a list of N.
GraphValue* GraphReader::constant_for(const ops::Argument* formal, Value value) {
  const ops::Type* type = wanted_type(formal);
  if (!type || value.is_none()) return builder_.constant(std::move(value));
  if (type->kind() == TypeKind::kFloat && value.is_int()) {
    return builder_.constant(static_cast<double>(value.to_int()));
  }
  if (type->kind() == TypeKind::kBool && value.is_int()) return builder_.constant(value.to_int() != 0);
  if (type->kind() != TypeKind::kList) return builder_.constant(std::move(value));
  const bool makes_floats = is_list_of(type, TypeKind::kFloat);
  const auto item = [&](const Value& one) {
    return builder_.constant(makes_floats && one.is_int() ? Value(static_cast<double>(one.to_int())) : one);
  };
  Values items;
  if (value.is_list()) {
    for (const Value& one : value.to_list()->items) items.push_back(item(one));
  } else {
    check(value.is_number() && formal->fixed_list_size > 0, "argument '", formal->name, "' is a ", value.tag_name(),
          ", not a list");
    for (int64_t i = 0; i < formal->fixed_list_size; ++i) items.push_back(item(value));
  }
  return builder_.list(type->element(), items);
}

// as_sym_int and similar: {"as_name": …} or a number.
GraphValue* GraphReader::symbol(const Json& value, const Scope& scope, const std::string& kind) {
  const auto [what, inner] = union_case(value, kind);
  if (what == "as_name") return look_up(to_text(inner, kind), scope);
  if (what == "as_int") return builder_.constant(to_int(inner, kind));
  if (what == "as_float") return builder_.constant(to_float(inner, kind));
  if (what == "as_bool") return builder_.constant(to_bool(inner, kind));
  fail(ErrorCode::kUnimplemented, kind, " of kind ", what, " is not supported");
}

GraphValue* GraphReader::list_argument(const std::string& kind, const Json& items, const Scope& scope,
                                       const ops::Argument* formal) {
  if (!items.is_array()) fail(ErrorCode::kDataLoss, kind, ": expected a list");
  Values values;
  ops::TypePtr element;
  const ops::Type* wanted = wanted_type(formal);
  const bool makes_floats = is_list_of(wanted, TypeKind::kFloat);
  for (const Json& item : items) {
    if (kind == "as_tensors") {
      values.push_back(look_up(string_member(item, "name", kind), scope));
    } else if (kind == "as_optional_tensors") {
      const auto [what, inner] = union_case(item, kind);
      values.push_back(what == "as_none" ? builder_.none() : look_up(string_member(inner, "name", kind), scope));
    } else if (kind == "as_ints") {
      const int64_t number = to_int(item, kind);
      values.push_back(makes_floats ? builder_.constant(static_cast<double>(number)) : builder_.constant(number));
    } else if (kind == "as_floats") {
      values.push_back(builder_.constant(to_float(item, kind)));
    } else if (kind == "as_bools") {
      values.push_back(builder_.constant(to_bool(item, kind)));
    } else if (kind == "as_strings") {
      values.push_back(builder_.constant(to_text(item, kind)));
    } else if (kind == "as_int_lists") {
      values.push_back(list_argument("as_ints", item, scope, nullptr));
    } else if (kind == "as_float_lists") {
      values.push_back(list_argument("as_floats", item, scope, nullptr));
    } else {
      GraphValue* value = symbol(item, scope, kind);
      if (makes_floats && value->type()->kind() == TypeKind::kInt) value = as_number(value, ops::float_type());
      values.push_back(value);
    }
  }
  if (kind == "as_tensors" || kind == "as_optional_tensors") {
    const bool has_none =
        wanted && wanted->kind() == TypeKind::kList && wanted->element()->kind() == TypeKind::kOptional;
    element = has_none || (!wanted && kind == "as_optional_tensors") ? ops::optional_type(ops::tensor_type())
                                                                     : ops::tensor_type();
  } else if (makes_floats || kind == "as_floats" || kind == "as_sym_floats") {
    element = ops::float_type();
  } else if (kind == "as_bools" || kind == "as_sym_bools") {
    element = ops::bool_type();
  } else if (kind == "as_strings") {
    element = ops::string_type();
  } else if (kind == "as_int_lists" || kind == "as_float_lists") {
    element = ops::list_type(kind == "as_int_lists" ? ops::int_type() : ops::float_type());
  } else {
    element = ops::int_type();
  }
  // An empty list of unknown type gets the parameter's type.
  if (values.empty() && wanted && wanted->kind() == TypeKind::kList) element = wanted->element();
  return builder_.list(element, values);
}

GraphValue* GraphReader::argument(const Json& argument, const Scope& scope, const ops::Argument* formal) {
  const auto [kind, value] = union_case(argument, "argument");
  if (kind == "as_none") return builder_.none();
  if (kind == "as_tensor") return look_up(string_member(value, "name", kind), scope);
  if (kind == "as_int") return constant_for(formal, to_int(value, kind));
  if (kind == "as_float") return constant_for(formal, to_float(value, kind));
  if (kind == "as_bool") return constant_for(formal, to_bool(value, kind));
  if (kind == "as_string") return constant_for(formal, to_text(value, kind));
  if (kind == "as_scalar_type") return builder_.constant(to_dtype(to_int(value, kind), kind));
  if (kind == "as_memory_format") return builder_.constant(to_memory_format(to_int(value, kind), kind));
  if (kind == "as_layout") return builder_.constant(to_layout(to_int(value, kind), kind));
  // The model runs on this device, wherever it was exported.
  if (kind == "as_device") return builder_.constant(Device());
  if (kind == "as_complex") {
    return builder_.constant(
        std::complex<double>(to_float(member(value, "real", kind), kind), to_float(member(value, "imag", kind), kind)));
  }
  if (kind == "as_optional_tensor") {
    const auto [what, inner] = union_case(value, kind);
    return what == "as_none" ? builder_.none() : look_up(string_member(inner, "name", kind), scope);
  }
  if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") {
    GraphValue* symbolic = symbol(value, scope, kind);
    const ops::Type* wanted = wanted_type(formal);
    if (wanted && wanted->kind() == TypeKind::kFloat) return as_number(symbolic, ops::float_type());
    if (wanted && wanted->kind() == TypeKind::kList && formal->fixed_list_size > 0) {
      return builder_.list(symbolic->type(), Values(static_cast<size_t>(formal->fixed_list_size), symbolic));
    }
    return symbolic;
  }
  constexpr std::string_view kLists[] = {"as_tensors",   "as_optional_tensors", "as_ints",       "as_floats",
                                         "as_bools",     "as_strings",          "as_sym_ints",   "as_sym_floats",
                                         "as_sym_bools", "as_int_lists",        "as_float_lists"};
  for (const std::string_view list : kLists) {
    if (kind == list) return list_argument(kind, value, scope, formal);
  }
  fail(ErrorCode::kUnimplemented, "an argument of kind ", kind, " is not supported");
}

}  // namespace tensord::jit::pt2
