#pragma once

#include "core/ops/op.h"

namespace tensord::ops {

// The innermost operator that the thread runs on a device that works later. What its kernels find wrong is reported
// when somebody waits for the device, under this name (core/tensor/cuda/error_word.h).
class OperatorScope {
 public:
  explicit OperatorScope(const Op& op) : before_(innermost_) { innermost_ = &op; }
  ~OperatorScope() { innermost_ = before_; }
  OperatorScope(const OperatorScope&) = delete;
  OperatorScope& operator=(const OperatorScope&) = delete;

  // Null outside of calls. Kept as long as the process, as records of operators are.
  static const char* name() { return innermost_ ? innermost_->schema.name.c_str() : nullptr; }

 private:
  static inline constinit thread_local const Op* innermost_ = nullptr;
  const Op* before_;
};

}  // namespace tensord::ops
