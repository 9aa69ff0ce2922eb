#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "core/base/error.h"
#include "server/transport/grpc/request_limits.h"

namespace tensord::server {

// What a call makes the daemon hold, and whether its client still waits. Whoever makes something of a request's bytes
// asks here first.
class CallCharge {
 public:
  CallCharge() = default;  // counts nothing
  // `admission` must outlive this.
  CallCharge(RequestLimits::Admission& admission, std::function<bool()> is_gone)
      : admission_(&admission), is_gone_(std::move(is_gone)) {}

  // Throws Error{kResourceExhausted} when there is no room for so many bytes more.
  void grow(uint64_t size_bytes) const {
    if (admission_) admission_->grow(size_bytes);
  }
  // Throws Error{kCancelled} when nobody waits any more.
  void check_wanted() const {
    if (is_gone_ && is_gone_()) fail(ErrorCode::kCancelled, "the client has gone");
  }
  RequestLimits::Admission* admission() const { return admission_; }

 private:
  RequestLimits::Admission* admission_ = nullptr;
  std::function<bool()> is_gone_;
};

}  // namespace tensord::server
