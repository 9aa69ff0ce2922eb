#include "core/jit/ir/type_match.h"

#include <algorithm>

namespace tensord::jit {

using ops::Type;
using ops::TypeKind;
using ops::TypePtr;

namespace {

bool match_members(const Type& formal, const Type& actual, TypeBindings& bindings) {
  if (formal.contained().size() != actual.contained().size()) return false;
  for (size_t i = 0; i < formal.contained().size(); ++i) {
    if (!match_type(*formal.contained()[i], actual.contained()[i], bindings)) return false;
  }
  return true;
}

bool match_variable(const Type& formal, const TypePtr& actual, TypeBindings& bindings) {
  auto [it, is_new] = bindings.try_emplace(formal.name(), actual);
  if (is_new || ops::is_subtype(actual, it->second)) return true;
  TypePtr common = ops::unify(actual, it->second);
  if (!common) return false;
  it->second = common;
  return true;
}

bool has_variable(const Type& type) {
  if (type.kind() == TypeKind::kVar) return true;
  for (const TypePtr& member : type.contained()) {
    if (has_variable(*member)) return true;
  }
  return false;
}

}  // namespace

bool match_type(const Type& formal, const TypePtr& actual, TypeBindings& bindings) {
  if (formal.kind() == TypeKind::kVar) return match_variable(formal, actual, bindings);
  if (!has_variable(formal)) return ops::is_subtype(*actual, formal);
  if (formal.kind() == TypeKind::kOptional) {
    if (actual->kind() == TypeKind::kNone) return true;
    const TypePtr& inner = actual->kind() == TypeKind::kOptional ? actual->element() : actual;
    return match_type(*formal.element(), inner, bindings);
  }
  if (actual->kind() != formal.kind()) return false;
  return match_members(formal, *actual, bindings);
}

TypePtr substitute(const TypePtr& formal, const TypeBindings& bindings) {
  if (formal->kind() == TypeKind::kVar) {
    auto it = bindings.find(formal->name());
    return it == bindings.end() ? formal : it->second;
  }
  if (!has_variable(*formal)) return formal;
  std::vector<TypePtr> members;
  for (const TypePtr& member : formal->contained()) members.push_back(substitute(member, bindings));
  if (formal->kind() == TypeKind::kOptional) return ops::optional_type(members.front());
  return std::make_shared<Type>(formal->kind(), formal->name(), std::move(members), formal->field_names());
}

bool may_hold_tensor(const Type& type) {
  switch (type.kind()) {
    case TypeKind::kTensor:
    case TypeKind::kAny:
    case TypeKind::kVar: return true;
    default: break;
  }
  return std::any_of(type.contained().begin(), type.contained().end(),
                     [](const TypePtr& member) { return may_hold_tensor(*member); });
}

}  // namespace tensord::jit
