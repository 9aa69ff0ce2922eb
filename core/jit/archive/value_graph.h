#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/ops/value.h"

namespace tensord::jit {

// The containers that a pickle made, kept until they are known to be safe. Values that come
// from a file may be nested without end, may contain themselves, or share so that walking them
// takes exponential time; all of that is refused here. Destroying it before then takes the
// containers apart one by one, never by recursion.
class ValueGraph {
 public:
  using States = std::vector<std::pair<ops::ObjectPtr, ops::Value>>;

  ValueGraph() = default;
  ~ValueGraph();
  ValueGraph(const ValueGraph&) = delete;
  ValueGraph& operator=(const ValueGraph&) = delete;

  // `value` is a new list, dict, tuple or object.
  void add(const ops::Value& value) { containers_.push_back(value); }
  // States take part as if they were in their objects' slots. Throws Error{kResourceExhausted, kUnimplemented}
  // whose text starts with `source`. With `infer_types`, lists and dicts of unknown (Any) types
  // get the type their items have in common.
  void verify(const std::string& source, const States& states, bool infer_types);

 private:
  std::vector<ops::Value> containers_;
  bool is_verified_ = false;
};

}  // namespace tensord::jit
