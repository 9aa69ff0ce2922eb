#include "core/jit/archive/conform.h"

#include "core/base/error.h"

namespace tensord::jit {

using ops::TypeKind;
using ops::TypePtr;
using ops::Value;

namespace {

constexpr uint64_t kMaxSteps = 200000000;

// Whether values inside a value of this type also have types to set.
bool has_parts(const TypePtr& type) {
  switch (type->kind()) {
    case TypeKind::kOptional:
    case TypeKind::kList:
    case TypeKind::kDict:
    case TypeKind::kTuple: return true;
    default: return false;
  }
}

bool is_plain_mismatch(const Value& value, TypeKind kind) {
  switch (kind) {
    case TypeKind::kTensor:  // an undefined tensor is None
      return !value.is_tensor() && !value.is_none();
    case TypeKind::kOpaque: return !value.is_opaque() && !value.is_none();
    case TypeKind::kInt: return !value.is_int();
    case TypeKind::kFloat: return !value.is_float();
    case TypeKind::kBool: return !value.is_bool();
    case TypeKind::kString: return !value.is_string();
    case TypeKind::kClass: return !value.is_object();
    default: return false;
  }
}

}  // namespace

void Conformer::spend(uint64_t steps) {
  spent_ += steps;
  if (spent_ > kMaxSteps) fail(ErrorCode::kResourceExhausted, source_, ": typing the values takes too long");
}

void Conformer::fail_type(const Value& value, const ops::Type& type) const {
  fail(ErrorCode::kDataLoss, source_, ": expected a value of type ", type.str(), " but got ", value.tag_name());
}

Value Conformer::conform(const Value& value, const TypePtr& type) {
  spend(1);
  switch (type->kind()) {
    case TypeKind::kOptional: return value.is_none() ? value : conform(value, type->element());
    case TypeKind::kTuple: return conform_tuple(value, type);
    case TypeKind::kList:
      if (!value.is_list()) fail_type(value, *type);
      conform_list(*value.to_list(), type);
      return value;
    case TypeKind::kDict:
      if (!value.is_dict()) fail_type(value, *type);
      conform_dict(*value.to_dict(), type);
      return value;
    default:
      if (is_plain_mismatch(value, type->kind())) fail_type(value, *type);
      return value;
  }
}

Value Conformer::conform_tuple(const Value& value, const TypePtr& type) {
  if (!value.is_tuple() || value.to_tuple()->items.size() != type->contained().size()) fail_type(value, *type);
  std::vector<Value> items = value.to_tuple()->items;
  for (size_t i = 0; i < items.size(); ++i) items[i] = conform(items[i], type->contained()[i]);
  return make_intrusive<ops::TupleObject>(std::move(items), type->field_names().empty() ? nullptr : type);
}

void Conformer::conform_list(ops::ListObject& list, const TypePtr& type) {
  list.element = type->element();
  spend(list.items.size());
  for (Value& item : list.items) {
    if (has_parts(list.element)) {
      item = conform(item, list.element);
    } else if (is_plain_mismatch(item, list.element->kind())) {
      fail_type(item, *list.element);
    }
  }
}

void Conformer::conform_dict(ops::DictObject& dict, const TypePtr& type) {
  dict.key = type->contained().at(0);
  dict.value = type->contained().at(1);
  for (auto& [key, item] : dict.mutable_items()) {
    spend(1);
    if (is_plain_mismatch(key, dict.key->kind())) fail_type(key, *dict.key);
    item = conform(item, dict.value);
  }
}

}  // namespace tensord::jit
