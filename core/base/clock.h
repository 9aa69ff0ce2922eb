#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tensord {

// A source of time that callers inject, so that no test needs to sleep.
class Clock {
 public:
  virtual ~Clock() = default;
  // Monotonic time in nanoseconds from an arbitrary origin.
  virtual int64_t now_ns() const = 0;
  static const Clock& system();
};

class SystemClock final : public Clock {
 public:
  int64_t now_ns() const override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
};

inline const Clock& Clock::system() {
  static const SystemClock clock;
  return clock;
}

// A clock that advances only on request. Thread-safe.
class ManualClock final : public Clock {
 public:
  int64_t now_ns() const override { return now_ns_.load(); }
  void advance_ns(int64_t delta_ns) { now_ns_.fetch_add(delta_ns); }

 private:
  std::atomic<int64_t> now_ns_{0};
};

}  // namespace tensord
