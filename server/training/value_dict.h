#pragma once

#include <string>

#include "core/base/error.h"
#include "core/ops/value.h"

namespace tensord::server {

// A dict with str keys as a value, for the state in checkpoints.
class ValueDict {
 public:
  ValueDict() : dict_(make_intrusive<ops::DictObject>(ops::string_type(), ops::any_type())) {}
  // Throws Error if the value is not a dict.
  explicit ValueDict(const ops::Value& value) : dict_(value.to_dict()) {}

  void set(const char* key, ops::Value value) { dict_->set(ops::Value(key), std::move(value)); }
  bool has(const char* key) const { return dict_->find(ops::Value(key)) >= 0; }
  // Throws Error{kDataLoss} naming the key.
  const ops::Value& at(const char* key) const {
    const std::ptrdiff_t index = dict_->find(ops::Value(key));
    if (index < 0) fail(ErrorCode::kDataLoss, "the state of the job has no '", key, "'");
    return dict_->items()[static_cast<size_t>(index)].second;
  }
  ops::Value value() const { return ops::Value(dict_); }

 private:
  ops::Dict dict_;
};

}  // namespace tensord::server
