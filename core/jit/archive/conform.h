#pragma once

#include <cstdint>
#include <string>

#include "core/ops/value.h"

namespace tensord::jit {

// Gives values from a pickle the types that the code declares: element types of lists and dicts, names of NamedTuples.
// A pickle stores tuples and lists without types.
class Conformer {
 public:
  explicit Conformer(std::string source) : source_(std::move(source)) {}

  // Changes lists and dicts in place, and rebuilds a tuple if one of its items changes. Throws Error{kDataLoss} if the
  // value does not fit the type, kResourceExhausted if the work exceeds its limit.
  ops::Value conform(const ops::Value& value, const ops::TypePtr& type);

 private:
  ops::Value conform_tuple(const ops::Value& value, const ops::TypePtr& type);
  void conform_list(ops::ListObject& list, const ops::TypePtr& type);
  void conform_dict(ops::DictObject& dict, const ops::TypePtr& type);
  void spend(uint64_t steps);
  [[noreturn]] void fail_type(const ops::Value& value, const ops::Type& type) const;

  const std::string source_;
  uint64_t spent_ = 0;
};

}  // namespace tensord::jit
