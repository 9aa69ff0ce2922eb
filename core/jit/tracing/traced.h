#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/ops/value.h"

namespace tensord::jit::tracing {

using Strings = std::vector<std::string>;

// A value of the program, traced for two sets of examples that differ in the dynamic sizes.
struct Traced {
  ops::Value a, b;  // one for each set; of lists, tuples and dicts only the types matter, see `items`
  // The value is not constant over all inputs. For tensors, Tracer::is_dynamic knows that.
  bool is_dynamic = false;
  // The name of a dynamic number in the file, in the format's own notation. "" if the file cannot express it.
  std::string number;
  // For an unknown bool: it tells whether these two numbers are equal.
  std::shared_ptr<const std::pair<Traced, Traced>> equality;
  std::string name;  // name of an operator's result, if the target shares memory
  std::string path;  // of an attribute: "layer1.0.weight"
  // The value in each probe (tracer.h); unset if unknown. Tensors have no elements unless they are small.
  std::shared_ptr<const std::vector<std::optional<ops::Value>>> probes;
  std::shared_ptr<std::vector<Traced>> items;  // elements of lists and tuples; key, value, key, value … for dicts

  bool is_list() const { return a.is_list() && items; }
  bool is_number() const { return a.is_number(); }
};

// Wraps a value that is the same in both sets, or a pair of values. Containers are wrapped recursively. Throws
// Error{kUnimplemented} if their lengths differ.
Traced wrap(const ops::Value& a, const ops::Value& b);
inline Traced wrap(const ops::Value& same) { return wrap(same, same); }

}  // namespace tensord::jit::tracing
