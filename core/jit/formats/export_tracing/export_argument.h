#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/ops/value.h"

namespace tensord::jit::tracing {

// An argument of the method that is written: its name, and two examples of it. Where they have different sizes, those
// stay open in the file. Without examples it is no input, but always this value.
struct ExportArgument {
  std::string name;
  Tensor first, second;
  ops::Value fixed;
  // Of its sizes: open ones of one name are equal, in all arguments. May be shorter; "" has none.
  std::vector<std::string> size_names = {};
};

inline bool has_open_sizes(const std::vector<ExportArgument>& arguments) {
  return std::ranges::any_of(arguments, [](const ExportArgument& one) {
    return one.first.defined() && one.first.sizes() != one.second.sizes();
  });
}

// The sizes that both examples have, and -1 where they differ.
inline Dims common_sizes(const Tensor& first, const Tensor& second) {
  Dims sizes = first.sizes();
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != second.sizes()[i]) sizes[i] = -1;
  }
  return sizes;
}

}  // namespace tensord::jit::tracing
