#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/ops/value.h"

namespace tensord::server {

// An argument of a model to convert: a tensor with its dynamic dimensions, or a non-tensor constant.
struct ConvertInput {
  std::string name;
  std::optional<ops::Value> fixed = {};
  std::string dtype;
  Dims sizes;    // sizes of the example; -1 if unknown
  Tensor given;  // the example itself, if one was given
  std::set<int64_t> open;
  std::vector<std::string> size_names = {};
};

// Which dynamic sizes are equal, and their values in each argument set. Sizes that may differ do differ and are not
// functions of each other, so that examples do not agree by chance.
struct SizePlan {
  struct Size {
    int64_t given = 0;  // size in the example; 0 without one
    bool is_batch = false;
  };
  enum class Rule {
    kFree,       // the example's size, then primes
    kMultiples,  // multiples of the example's size, which some programs require
    kCounts,     // consecutive sizes from the example's, for narrow ranges
  };
  std::vector<Size> sizes;
  std::map<std::pair<size_t, int64_t>, size_t> places;  // (argument, dimension) → index into `sizes`
  Rule rule = Rule::kFree;
  int64_t batch = 2, other = 8;  // sizes without an example, for the other rules

  // The sizes of argument set `set`, counted from 1. The program runs with these.
  std::vector<int64_t> example(int64_t set) const;
  // Sizes used for shape inference only: small ones, and some beyond any limit that a program may have.
  std::vector<std::vector<int64_t>> probes() const;
  // The full shape of an argument, given values for the dynamic sizes.
  Dims sizes_of(const std::vector<ConvertInput>& inputs, size_t argument, const std::vector<int64_t>& open) const;
};

// The plans to try, those with the fewest equal sizes first.
std::vector<SizePlan> size_plans(const std::vector<ConvertInput>& inputs);

// An example argument of this shape.
Tensor example_of(const ConvertInput& input, const Dims& sizes);

}  // namespace tensord::server
