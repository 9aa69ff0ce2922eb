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
  // Its sizes in other sets, as many for each argument: nothing runs with them, so they may be as large as they like.
  // What the examples show of sizes is believed only where it is true for these as well.
  std::vector<Dims> probes = {};
};

// Without sets of others the examples' own sizes are such.
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

// The sizes that both examples have, and -1 where they differ.
inline Dims common_sizes(const Tensor& first, const Tensor& second) {
  Dims sizes = first.sizes();
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != second.sizes()[i]) sizes[i] = -1;
  }
  return sizes;
}

}  // namespace tensord::jit::tracing
