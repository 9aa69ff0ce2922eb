#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "core/base/error.h"
#include "server/transport/grpc/request_limits.h"

namespace tensord::server {

// Charges the memory that one call makes the daemon allocate against its admission, and tells whether the client still
// waits. Code that expands a request's bytes charges the expansion here first.
class CallCharge {
 public:
  CallCharge() = default;  // charges nothing
  // `admission` must outlive this object.
  CallCharge(RequestLimits::Admission& admission, std::function<bool()> is_gone)
      : admission_(&admission), is_gone_(std::move(is_gone)) {}

  // Throws Error{kResourceExhausted} when the memory quota has less than `size_bytes` left.
  void grow(uint64_t size_bytes) const {
    if (admission_) admission_->grow(size_bytes);
  }
  // Throws Error{kCancelled} when the client has disconnected.
  void check_wanted() const {
    if (is_gone_ && is_gone_()) fail(ErrorCode::kCancelled, "the client has gone");
  }
  RequestLimits::Admission* admission() const { return admission_; }

 private:
  RequestLimits::Admission* admission_ = nullptr;
  std::function<bool()> is_gone_;
};

}  // namespace tensord::server
