#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/ops/value.h"

namespace tensord::jit::tracing {

using Strings = std::vector<std::string>;

// A value of the program while it is run for two sets of examples, which differ in the sizes that are to stay open.
struct Traced {
  ops::Value a, b;  // for each set. Of lists, tuples and dicts only the types count: see `items`
  // It is not the same for every input. Of tensors Tracer::is_dynamic knows it.
  bool is_dynamic = false;
  // Of a number that is dynamic: what the file has for it (each format says what that is). "" where nothing says it.
  std::string number;
  // Of a bool that is not known: it says whether these two numbers are equal.
  std::shared_ptr<const std::pair<Traced, Traced>> equality;
  std::string name;  // of a tensor that an operator gave, where the target keeps memory shared
  std::string path;  // of an attribute: "layer1.0.weight"
  // What it is for each set of other sizes (tracer.h); none where that is not known. Tensors have no elements, but
  // small ones.
  std::shared_ptr<const std::vector<std::optional<ops::Value>>> probes;
  std::shared_ptr<std::vector<Traced>> items;  // of lists and tuples; of dicts key, value, key, value …

  bool is_list() const { return a.is_list() && items; }
  bool is_number() const { return a.is_number(); }
};

// Wraps what is the same for both sets, or a pair of results. Containers are taken apart. Throws
// Error{kUnimplemented} where their lengths differ.
Traced wrap(const ops::Value& a, const ops::Value& b);
inline Traced wrap(const ops::Value& same) { return wrap(same, same); }

}  // namespace tensord::jit::tracing
