#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/base/error.h"

namespace tensord::server {

// Limits of all clients together: inference requests in flight, and bytes that clients make the daemon hold (requests,
// what they are parsed to, answers). Thread-safe.
class RequestLimits {
 public:
  RequestLimits() = default;
  // 0: no limit. `max_message_bytes` limits one decompressed message.
  RequestLimits(uint64_t max_requests, uint64_t max_bytes, uint64_t max_message_bytes = 0)
      : max_requests_(max_requests), max_bytes_(max_bytes), max_message_bytes_(max_message_bytes) {}

  // An admitted request; it counts until this is destroyed. Must not outlive the limits.
  class Admission {
   public:
    Admission() = default;
    Admission(Admission&& other) noexcept
        : limits_(std::exchange(other.limits_, nullptr)), requests_(other.requests_), size_bytes_(other.size_bytes_) {}
    Admission& operator=(Admission&& other) noexcept {
      std::swap(limits_, other.limits_);
      std::swap(requests_, other.requests_);
      std::swap(size_bytes_, other.size_bytes_);
      return *this;
    }
    ~Admission() {
      if (limits_) limits_->release(requests_, size_bytes_);
    }

    // Charges more bytes, before they are allocated. Throws Error{kResourceExhausted} and charges nothing if that
    // exceeds the limit.
    void grow(uint64_t size_bytes) {
      if (!limits_) return;
      limits_->take_bytes(size_bytes);
      size_bytes_ += size_bytes;
    }

   private:
    friend RequestLimits;
    Admission(RequestLimits& limits, uint64_t requests) : limits_(&limits), requests_(requests) {}

    RequestLimits* limits_ = nullptr;
    uint64_t requests_ = 0;
    uint64_t size_bytes_ = 0;
  };

  // Admits an inference request. Throws Error{kResourceExhausted} if a limit is reached.
  Admission admit(uint64_t size_bytes) {
    const uint64_t requests = requests_.fetch_add(1, std::memory_order_relaxed) + 1;
    Admission admission(*this, 1);
    if (max_requests_ != 0 && requests > max_requests_) {
      fail(ErrorCode::kResourceExhausted, "the server has ", max_requests_, " requests under way and takes no more");
    }
    admission.grow(size_bytes);
    return admission;
  }

  // Admits any other request; only its bytes count. Small ones are always admitted, so that probes are answered.
  Admission hold(uint64_t size_bytes) { return charge(size_bytes > kSmallBytes ? size_bytes : 0); }

  // Charges bytes of any size, such as answers, of which there may be many.
  Admission charge(uint64_t size_bytes) {
    Admission admission(*this, 0);
    admission.grow(size_bytes);
    return admission;
  }

  // The same, with shared ownership.
  std::shared_ptr<const void> share(uint64_t size_bytes) {
    return std::make_shared<const Admission>(charge(size_bytes));
  }

  uint64_t requests() const { return requests_.load(std::memory_order_relaxed); }
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  // The peak since the last call.
  uint64_t take_peak() { return peak_.exchange(bytes(), std::memory_order_relaxed); }
  uint64_t max_bytes() const { return max_bytes_; }
  uint64_t max_message_bytes() const { return max_message_bytes_; }

 private:
  static constexpr uint64_t kSmallBytes = 4096;

  void take_bytes(uint64_t size_bytes) {
    const uint64_t bytes = bytes_.fetch_add(size_bytes, std::memory_order_relaxed) + size_bytes;
    if (max_bytes_ == 0 || bytes <= max_bytes_) {
      // An update that is lost between two threads is harmless.
      if (bytes > peak_.load(std::memory_order_relaxed)) peak_.store(bytes, std::memory_order_relaxed);
      return;
    }
    bytes_.fetch_sub(size_bytes, std::memory_order_relaxed);
    fail(ErrorCode::kResourceExhausted, "there is no room for ", size_bytes, " bytes more: clients have ",
         bytes - size_bytes, " of the ", max_bytes_, " bytes of --client-memory-quota under way and the server takes ",
         "no more");
  }
  void release(uint64_t requests, uint64_t size_bytes) {
    if (requests != 0) requests_.fetch_sub(requests, std::memory_order_relaxed);
    if (size_bytes != 0) bytes_.fetch_sub(size_bytes, std::memory_order_relaxed);
  }

  const uint64_t max_requests_ = 0;
  const uint64_t max_bytes_ = 0;
  const uint64_t max_message_bytes_ = 0;
  std::atomic<uint64_t> requests_{0};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> peak_{0};
};

}  // namespace tensord::server
