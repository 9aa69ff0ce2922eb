#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/ops/value.h"

namespace tensord::jit::onnx {

// A value of the program while it is run for two sets of examples, which differ in the sizes that are to stay open.
struct Traced {
  ops::Value a, b;  // for each set. Of lists, tuples and dicts only the types count: see `items`
  // It is not the same for every input. Of tensors Tracer::is_dynamic knows it.
  bool is_dynamic = false;
  // Of a number that is dynamic: the int64, float or bool tensor of one element, shape [1], that the file has for it.
  // "" where nothing in the file says it.
  std::string number;
  std::string path;                            // of an attribute: "layer1.0.weight"
  std::shared_ptr<std::vector<Traced>> items;  // of lists and tuples; of dicts key, value, key, value …

  bool is_list() const { return a.is_list() && items; }
  bool is_number() const { return a.is_number(); }
};

}  // namespace tensord::jit::onnx
