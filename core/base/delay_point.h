#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

#include "core/base/test_hooks_option.h"

namespace tensord {

// Inserts pauses at named places of builds with TENSORD_TEST_HOOKS, so that tests can provoke rare races. The variable
// TENSORD_DELAYS="NAME=MICROSECONDS,NAME=MICROSECONDS" names the places. Each pass through a place sleeps for a random
// time from 0 to the given one; the times are the same in every run that passes through the places in the same order.
// Without the variable a place costs one load. Malformed entries, and entries above a second, are ignored.
class DelayPoint {
 public:
  explicit DelayPoint(std::string_view name) : longest_us_(longest_us(name)) {}

  // Thread-safe.
  void pass() {
    if (longest_us_ == 0) [[likely]]
      return;
    // A linear congruential generator. Its high bits are random enough for delays.
    uint64_t seen = state_.load(std::memory_order_relaxed);
    while (!state_.compare_exchange_weak(seen, seen * 6364136223846793005u + 1442695040888963407u,
                                         std::memory_order_relaxed)) {
    }
    std::this_thread::sleep_for(std::chrono::microseconds((seen >> 33) % (longest_us_ + 1)));
  }

  // The time that the environment gives for this name; 0 where it gives none.
  static uint64_t longest_us(std::string_view name) {
    const char* const text = std::getenv("TENSORD_DELAYS");
    return text ? longest_us(text, name) : 0;
  }

  static uint64_t longest_us(std::string_view text, std::string_view name) {
    while (!text.empty()) {
      const std::string_view entry = text.substr(0, text.find(','));
      text.remove_prefix(std::min(text.size(), entry.size() + 1));
      if (entry.size() <= name.size() + 1 || entry.substr(0, name.size()) != name || entry[name.size()] != '=')
        continue;
      const std::string number(entry.substr(name.size() + 1));
      char* end = nullptr;
      const unsigned long long value = std::strtoull(number.c_str(), &end, 10);
      if (*end == '\0' && value <= 1000000) return value;
    }
    return 0;
  }

 private:
  const uint64_t longest_us_;
  std::atomic<uint64_t> state_{1};
};

}  // namespace tensord

// Pauses at this line where TENSORD_DELAYS names it: TENSORD_DELAY("queue.pop").
#if TENSORD_TEST_HOOKS
#define TENSORD_DELAY(NAME)                            \
  do {                                                 \
    static ::tensord::DelayPoint tensord_delay_{NAME}; \
    tensord_delay_.pass();                             \
  } while (false)
#else
#define TENSORD_DELAY(NAME) static_cast<void>(0)
#endif
