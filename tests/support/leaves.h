#pragma once

#include <vector>

#include "core/ops/value.h"

namespace tensord::ops {

inline void add_leaves(const Value& value, std::vector<Value>& leaves) {
  if (value.is_none()) return;
  if (value.is_tuple()) {
    for (const Value& item : value.to_tuple()->items) add_leaves(item, leaves);
  } else if (value.is_list()) {
    for (const Value& item : value.to_list()->items) add_leaves(item, leaves);
  } else {
    leaves.push_back(value);
  }
}

// What tuples and lists hold in all depths, without None.
inline std::vector<Value> leaves_of(const Value& value) {
  std::vector<Value> leaves;
  add_leaves(value, leaves);
  return leaves;
}

}  // namespace tensord::ops
