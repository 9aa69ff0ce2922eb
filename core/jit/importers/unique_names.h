#pragma once

#include <initializer_list>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "core/base/error.h"

namespace tensord::jit {

// Generates unique names: "add", "add_1", "add_2", … Not thread-safe.
class UniqueNames {
 public:
  UniqueNames() = default;
  // Names that are never returned.
  explicit UniqueNames(std::initializer_list<const char*> reserved) : taken_(reserved.begin(), reserved.end()) {}

  std::string make(const std::string& hint) {
    std::string name = hint;
    // Continues after the last number for this hint, because thousands of nodes may have the same one.
    for (int64_t& number = numbers_[hint]; !taken_.insert(name).second;) name = concat(hint, "_", ++number);
    return name;
  }

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int64_t> numbers_;  // last number for each hint
};

}  // namespace tensord::jit
