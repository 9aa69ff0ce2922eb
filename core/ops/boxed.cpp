#include "core/ops/boxed.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/ops/registry.h"

namespace tensord::ops {
namespace {

struct Entry {
  BoxedKind kind;
  std::string name;
  DirectFn function;
};

// Filled before main.
std::vector<Entry>& boxed_entries() {
  static std::vector<Entry> boxed_entries;
  return boxed_entries;
}

// Moves values about and never looks into them: lists, tuples, comparisons with None.
bool takes_any(const Op& op) {
  return std::none_of(op.schema.arguments.begin(), op.schema.arguments.end(), [](const Argument& argument) {
    const Type* type = argument.type.get();
    while (type->kind() == TypeKind::kOptional || type->kind() == TypeKind::kList) type = type->element().get();
    return type->kind() == TypeKind::kTensor || type->kind() == TypeKind::kNumber;
  });
}

using Table = std::array<std::unordered_map<const Op*, DirectFn>, kBoxedKinds>;

Table make_boxed_table() {
  Table table;
  for (const Op* op : all_ops()) {
    if (!takes_any(*op) || !op->direct) continue;
    for (auto& forms : table) forms.emplace(op, op->direct);
  }
  for (const auto& [kind, name, function] : boxed_entries()) table[static_cast<size_t>(kind)][&get_op(name)] = function;
  return table;
}

const char* boxed_name(BoxedKind kind) { return kind == BoxedKind::kQuantized ? "quantized" : "sparse"; }

}  // namespace

const BoxedTensor* as_boxed(const Value& value) {
  return value.is_opaque() ? dynamic_cast<const BoxedTensor*>(value.to_opaque().get()) : nullptr;
}

const BoxedTensor* find_boxed(std::span<const Value> values) {
  for (const Value& value : values) {
    if (value.is_opaque()) {
      if (const BoxedTensor* found = as_boxed(value)) return found;
    } else if (value.is_list()) {
      const Type* element = value.to_list()->element.get();
      while (element->kind() == TypeKind::kOptional) element = element->element().get();
      if (element->kind() != TypeKind::kTensor) continue;
      for (const Value& item : value.to_list()->items) {
        if (const BoxedTensor* found = as_boxed(item)) return found;
      }
    }
  }
  return nullptr;
}

const DirectFn* boxed_form(const Op& op, BoxedKind kind) {
  static const Table table = make_boxed_table();
  const auto& forms = table[static_cast<size_t>(kind)];
  const auto it = forms.find(&op);
  return it == forms.end() ? nullptr : &it->second;
}

const DirectFn& checked_boxed_form(const Op& op, const BoxedTensor& tensor) {
  if (const DirectFn* form = boxed_form(op, tensor.boxed_kind())) return *form;
  fail(ErrorCode::kUnimplemented, op.schema.full_name(), " is not implemented for ", boxed_name(tensor.boxed_kind()),
       " tensors (", tensor.describe(), ")");
}

BoxedBuilder& BoxedBuilder::direct(const DirectFn& function) {
  std::istringstream words(names_);
  for (std::string name; words >> name;) boxed_entries().push_back({kind_, name, function});
  return *this;
}

bool add_boxed_op(BoxedKind kind, const char* schema, const DirectFn& function) {
  const std::string name = std::string(schema).substr(0, std::string_view(schema).find('('));
  OpBuilder(schema, __FILE__, __LINE__)
      .direct([kind](std::span<const Value> v) -> Value {
        const bool is_tensor = !v.empty() && v[0].is_tensor();
        fail(ErrorCode::kInvalidArgument, "expected a ", boxed_name(kind), " tensor, but got ",
             is_tensor ? tensord::describe(v[0].to_tensor()) : std::string(v.empty() ? "nothing" : v[0].tag_name()));
      })
      .dynamic_shape()
      .constant_result();
  BoxedBuilder(kind, name.c_str()).direct(function);
  return true;
}

}  // namespace tensord::ops
