#pragma once

#include <vector>

#include "core/jit/ir/graph_builder.h"

namespace tensord::jit {

// Builds a list as a node; `value_of(item, element type)` makes each item. `type` is the expected type: a list or an
// optional list; for any other type the list's own type counts. REQUIRES: value.is_list().
template <class ValueOf>
GraphValue* list_value(GraphBuilder& builder, const ops::Value& value, const ops::TypePtr& type,
                       const ValueOf& value_of) {
  using ops::TypeKind;
  const ops::TypePtr inner = type->kind() == TypeKind::kOptional ? type->contained()[0] : type;
  const ops::TypePtr element = inner->kind() == TypeKind::kList ? inner->contained()[0] : value.to_list()->element;
  std::vector<GraphValue*> items;
  for (const ops::Value& item : value.to_list()->items) items.push_back(value_of(item, element));
  return builder.list(element, items);
}

}  // namespace tensord::jit
