#include "core/jit/runtime/batch_safety.h"

#include <algorithm>
#include <set>

#include "core/jit/ir/operator_search.h"
#include "core/ops/attributes/batch_independence.h"

namespace tensord::jit {
namespace {

using ops::Value;

// The class of an engine object that is reachable from the value; empty if there is none.
std::string find_packed(const Value& value, std::set<const void*>& seen) {
  if (value.is_opaque()) return value.to_opaque()->class_name();
  if (!value.is_object() && !value.is_list() && !value.is_dict() && !value.is_tuple()) return {};
  if (!seen.insert(value.identity()).second) return {};
  std::string found;
  const auto look = [&](const Value& item) {
    if (found.empty()) found = find_packed(item, seen);
  };
  if (value.is_object()) std::ranges::for_each(value.to_object()->slots, look);
  if (value.is_list()) std::ranges::for_each(value.to_list()->items, look);
  if (value.is_tuple()) std::ranges::for_each(value.to_tuple()->items, look);
  if (value.is_dict()) {
    for (const auto& [key, item] : value.to_dict()->items()) look(item);
  }
  return found;
}

}  // namespace

std::string find_mixing_operator(const Module& module, const Method& method) {
  OperatorSearch search(module.functions(), ops::mixes_samples);
  if (const ops::Op* found = search.find(method.graph().block())) return found->schema.full_name();
  if (!search.has_unknown_calls()) return {};
  std::set<const void*> seen;
  return find_packed(Value(module.object()), seen);
}

}  // namespace tensord::jit
