#pragma once

#include <initializer_list>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "core/base/error.h"

namespace tensord::jit {

/// Names of a file, each given once: "add", "add_1", "add_2", … Not thread-safe.
class UniqueNames {
 public:
  UniqueNames() = default;
  /// Names that are not given.
  explicit UniqueNames(std::initializer_list<const char*> reserved) : taken_(reserved.begin(), reserved.end()) {}

  std::string make(const std::string& hint) {
    std::string name = hint;
    // Tried from where the last one of this hint was found: thousands of nodes may have one.
    for (int64_t& number = numbers_[hint]; !taken_.insert(name).second;) name = concat(hint, "_", ++number);
    return name;
  }

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int64_t> numbers_;  // the last of each hint
};

}  // namespace tensord::jit
