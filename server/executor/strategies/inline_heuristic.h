#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace tensord::server {

// Average run times of one model by input size, to decide which requests take less time than a switch to another
// thread. Thread-safe; a lost update is harmless.
class InlineHeuristic {
 public:
  InlineHeuristic() {
    for (Average& average : averages_) average.store(kUnknown, std::memory_order_relaxed);
  }

  static constexpr int64_t kShortNs = 30'000;

  // False for sizes not seen yet.
  bool is_short(size_t input_bytes) const { return average(input_bytes).load(std::memory_order_relaxed) <= kShortNs; }

  void note(size_t input_bytes, int64_t ns) {
    std::atomic<int64_t>& average_ns = average(input_bytes);
    const int64_t before = average_ns.load(std::memory_order_relaxed);
    const int64_t after = before == kUnknown ? ns : before + (ns - before) / 8;
    average_ns.store(after, std::memory_order_relaxed);
  }

 private:
  static constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();
  // One average per power of two; all small sizes share one.
  static constexpr size_t kSmallBits = 12;
  using Average = std::atomic<int64_t>;
  static size_t place_of(size_t bytes) {
    const auto bits = static_cast<size_t>(std::bit_width(bytes));
    return bits <= kSmallBits ? 0 : bits - kSmallBits;
  }
  const Average& average(size_t bytes) const { return averages_[place_of(bytes)]; }
  Average& average(size_t bytes) { return averages_[place_of(bytes)]; }

  std::array<Average, 65 - kSmallBits> averages_;
};

}  // namespace tensord::server
