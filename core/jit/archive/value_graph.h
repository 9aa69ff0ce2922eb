#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/ops/value.h"

namespace tensord::jit {

// The containers that a pickle made, kept until they are verified. Values from a file may be nested too deeply, may
// contain themselves, or may share items so that a walk takes exponential time; verify() rejects all of these. The
// destructor of an unverified graph takes the containers apart one by one, without recursion.
class ValueGraph {
 public:
  using States = std::vector<std::pair<ops::ObjectPtr, ops::Value>>;

  ValueGraph() = default;
  ~ValueGraph();
  ValueGraph(const ValueGraph&) = delete;
  ValueGraph& operator=(const ValueGraph&) = delete;

  // `value` is a new list, dict, tuple or object.
  void add(const ops::Value& value) { containers_.push_back(value); }
  // Treats states as if they were already in their objects' slots. Throws Error{kResourceExhausted, kUnimplemented}
  // whose message starts with `source`. With `infer_types`, lists and dicts of unknown (Any) types get the common type
  // of their items.
  void verify(const std::string& source, const States& states, bool infer_types);

 private:
  std::vector<ops::Value> containers_;
  bool is_verified_ = false;
};

}  // namespace tensord::jit
