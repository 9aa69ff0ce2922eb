#pragma once

#include <cstdint>
#include <string>

#include "core/ops/value.h"

namespace tensord::jit {

// Gives values read from a pickle the types that code declares for them: element types of
// lists and dicts, names of NamedTuples. The pickle itself stores tuples and lists bare.
class Conformer {
 public:
  explicit Conformer(std::string source) : source_(std::move(source)) {}

  // Lists and dicts are changed in place, tuples are made anew where a part changes. Throws
  // Error{kDataLoss} when the value cannot be of the type, kResourceExhausted after too much work.
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
