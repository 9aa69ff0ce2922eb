#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/ops/value.h"

namespace tensord::server {

// An argument of a model that is converted, and which of its dimensions stay open; or one that is no tensor, and always
// this value.
struct ConvertInput {
  std::string name;
  std::optional<ops::Value> fixed = {};
  std::string dtype;
  Dims sizes;    // of the example; -1 where nobody says it
  Tensor given;  // or the example itself
  std::set<int64_t> open;
  std::vector<std::string> size_names = {};
};

// Which open sizes are one, and how large they are in the sets of examples. Sizes that need not be equal are not, and
// no function of each other, so that examples do not agree by chance.
struct SizePlan {
  struct Size {
    int64_t given = 0;  // as the example has it; 0 where there is none
    bool is_batch = false;
  };
  enum class Rule {
    kFree,       // the example's, then primes
    kMultiples,  // multiples of the example's: some programs take nothing else
    kCounts,     // they count up from the example's, for narrow ranges
  };
  std::vector<Size> sizes;
  std::map<std::pair<size_t, int64_t>, size_t> places;  // (argument, dimension) → which of `sizes`
  Rule rule = Rule::kFree;
  int64_t batch = 2, other = 8;  // where there is no example, for rules that are not free

  // Sizes in one of the sets that the program runs with, from 1.
  std::vector<int64_t> example(int64_t set) const;
  // And in those that are for shapes alone, small ones and some beyond any limit that a program may have.
  std::vector<std::vector<int64_t>> probes() const;
  // All sizes of an argument, where open ones have these sizes.
  Dims sizes_of(const std::vector<ConvertInput>& inputs, size_t argument, const std::vector<int64_t>& open) const;
};

// The plans that are worth trying, in order: with as few equal sizes as possible first.
std::vector<SizePlan> size_plans(const std::vector<ConvertInput>& inputs);

// An argument of these sizes.
Tensor example_of(const ConvertInput& input, const Dims& sizes);

}  // namespace tensord::server
