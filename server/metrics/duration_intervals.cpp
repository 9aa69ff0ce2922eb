#include "server/metrics/duration_intervals.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace tensord::server {
namespace {

// 50 us to 10 s: small models take tens of microseconds, large ones seconds.
constexpr std::array<double, kClassicBuckets> kClassicLimits{
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};

// Rounds down: for integer nanoseconds, "at most the limit" and "at most its floor" are the same.
int64_t to_ns(double seconds) { return static_cast<int64_t>(std::floor(seconds * 1e9 * (1 + 1e-15))); }

struct Interval {
  size_t classic, native;  // bucket indices; `native` 0 is the zero bucket
};

struct Table {
  static constexpr unsigned kSteps = 8;                 // per octave
  std::array<int64_t, kDurationIntervals> limits_ns{};  // the last interval has no upper limit
  std::array<Interval, kDurationIntervals> intervals{};
  std::array<uint8_t, 64 * kSteps> first{};  // interval of the shortest duration that has these leading bits

  Table() {
    std::vector<int64_t> native, classic, all;
    for (size_t i = 0; i <= kNativeBuckets; ++i) {
      native.push_back(to_ns(std::exp2((kFirstNativeIndex - 1 + static_cast<double>(i)) / (1 << kNativeSchema))));
    }
    for (const double limit : kClassicLimits) classic.push_back(to_ns(limit));
    all = native;
    all.insert(all.end(), classic.begin(), classic.end());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    all.push_back(std::numeric_limits<int64_t>::max());
    std::copy_n(all.begin(), std::min(all.size(), limits_ns.size()), limits_ns.begin());
    for (size_t i = 0; i < limits_ns.size(); ++i) {
      const auto bucket = [&](const std::vector<int64_t>& limits) {
        return static_cast<size_t>(std::lower_bound(limits.begin(), limits.end(), limits_ns[i]) - limits.begin());
      };
      intervals[i] = {bucket(classic), bucket(native)};
    }
    for (unsigned width = 0; width < 64; ++width) {
      for (unsigned step = 0; step < kSteps; ++step) {
        const auto shortest = static_cast<int64_t>(width < 4 ? 0 : (uint64_t{kSteps + step} << (width - 4)));
        const auto found = std::lower_bound(limits_ns.begin(), limits_ns.end(), shortest);
        first[width * kSteps + step] = static_cast<uint8_t>(found - limits_ns.begin());
      }
    }
  }
};

const Table& table() {
  static const Table table;
  return table;
}

}  // namespace

size_t duration_interval(int64_t ns) {
  static const Table& t = table();
  if (ns <= 0) return 0;
  const auto value = static_cast<uint64_t>(ns);
  const auto width = static_cast<unsigned>(std::bit_width(value));
  const unsigned step = width < 4 ? 0 : static_cast<unsigned>(value >> (width - 4)) & (Table::kSteps - 1);
  size_t i = t.first[width * Table::kSteps + step];
  while (ns > t.limits_ns[i]) ++i;
  return i;
}

std::span<const double> classic_limits() { return kClassicLimits; }

ClassicCounts to_classic(const IntervalCounts& counts) {
  ClassicCounts out;
  for (size_t i = 0; i < counts.size(); ++i) out.buckets[table().intervals[i].classic] += counts[i];
  return out;
}

NativeCounts to_native(const IntervalCounts& counts) {
  NativeCounts out;
  for (size_t i = 0; i < counts.size(); ++i) {
    const size_t bucket = table().intervals[i].native;
    (bucket == 0 ? out.zero_count : out.buckets[bucket - 1]) += counts[i];
  }
  return out;
}

}  // namespace tensord::server
