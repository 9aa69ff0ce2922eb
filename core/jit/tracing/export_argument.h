#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/ops/value.h"

namespace tensord::jit::tracing {

// An argument of the exported method: its name and two examples of it. Sizes that differ between the examples are
// dynamic in the file. Without examples, the argument is a constant instead of an input.
struct ExportArgument {
  std::string name;
  Tensor first, second;
  ops::Value fixed;
  // Names of its dimensions: dynamic sizes with the same name are equal, over all arguments. May be shorter than the
  // rank; "" means unnamed.
  std::vector<std::string> size_names = {};
  // Its shapes in the probes, equally many for each argument. Nothing runs on them, so they may be arbitrarily large. A
  // relation between sizes that holds in the examples is used only if it holds in the probes too.
  std::vector<Dims> probes = {};
};

// Defaults to the shapes of the examples.
inline std::vector<Dims> probes_of(const ExportArgument& one) {
  if (one.probes.empty()) return {one.first.sizes(), one.second.sizes()};
  return one.probes;
}

inline size_t count_probes(const std::vector<ExportArgument>& arguments) {
  for (const ExportArgument& one : arguments) {
    if (one.first.defined()) return probes_of(one).size();
  }
  return 1;
}

inline bool has_open_sizes(const std::vector<ExportArgument>& arguments) {
  return std::ranges::any_of(arguments, [](const ExportArgument& one) {
    return one.first.defined() && one.first.sizes() != one.second.sizes();
  });
}

// The shape that both examples share, with -1 for sizes that differ.
inline Dims common_sizes(const Tensor& first, const Tensor& second) {
  Dims sizes = first.sizes();
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != second.sizes()[i]) sizes[i] = -1;
  }
  return sizes;
}

}  // namespace tensord::jit::tracing
