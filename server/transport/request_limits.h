#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "core/base/error.h"

namespace tensord::server {

// How many inference requests, and how many bytes of them, all clients together may have under way. Thread-safe.
class RequestLimits {
 public:
  RequestLimits() = default;
  // 0: no limit.
  RequestLimits(uint64_t max_requests, uint64_t max_bytes) : max_requests_(max_requests), max_bytes_(max_bytes) {}

  // A request that was let in; it counts until this goes. Must not outlive the limits.
  class Admission {
   public:
    Admission() = default;
    Admission(RequestLimits& limits, uint64_t size_bytes) : limits_(&limits), size_bytes_(size_bytes) {}
    Admission(Admission&& other) noexcept
        : limits_(std::exchange(other.limits_, nullptr)), size_bytes_(other.size_bytes_) {}
    Admission& operator=(Admission&& other) noexcept {
      std::swap(limits_, other.limits_);
      std::swap(size_bytes_, other.size_bytes_);
      return *this;
    }
    ~Admission() {
      if (limits_) limits_->release(size_bytes_);
    }

   private:
    RequestLimits* limits_ = nullptr;
    uint64_t size_bytes_ = 0;
  };

  // Throws Error{kResourceExhausted} when a limit is reached. One request is always let in, of whatever size.
  Admission admit(uint64_t size_bytes) {
    const uint64_t requests = requests_.fetch_add(1, std::memory_order_relaxed) + 1;
    const uint64_t bytes = bytes_.fetch_add(size_bytes, std::memory_order_relaxed) + size_bytes;
    Admission admission(*this, size_bytes);
    if (max_requests_ != 0 && requests > max_requests_) {
      fail(ErrorCode::kResourceExhausted, "the server has ", max_requests_, " requests under way and takes no more");
    }
    if (max_bytes_ != 0 && bytes > max_bytes_ && requests > 1) {
      fail(ErrorCode::kResourceExhausted, "the requests under way have ", max_bytes_,
           " bytes and the server takes no more");
    }
    return admission;
  }
  uint64_t requests() const { return requests_.load(std::memory_order_relaxed); }
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  void release(uint64_t size_bytes) {
    requests_.fetch_sub(1, std::memory_order_relaxed);
    bytes_.fetch_sub(size_bytes, std::memory_order_relaxed);
  }

  const uint64_t max_requests_ = 0;
  const uint64_t max_bytes_ = 0;
  std::atomic<uint64_t> requests_{0};
  std::atomic<uint64_t> bytes_{0};
};

}  // namespace tensord::server
