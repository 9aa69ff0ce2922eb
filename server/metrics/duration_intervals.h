#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tensord::server {

// Each interval lies within one bucket of two histograms: a classic one with decimal limits from 50 us to 10 s, and a
// native Prometheus one whose limits are powers of 2^(1/4) from 2^-20 to 2^7 seconds. Incrementing one interval
// therefore counts for both. Upper limits are inclusive.
inline constexpr int kNativeSchema = 2;        // limits are powers of 2^(2^-kNativeSchema)
inline constexpr int kFirstNativeIndex = -79;  // (2^(-80/4), 2^(-79/4)] seconds; shorter durations count as zero
inline constexpr size_t kNativeBuckets = 108;  // up to 2^(28/4) seconds
inline constexpr size_t kClassicBuckets = 17;  // buckets with an upper limit; one more takes longer durations
inline constexpr size_t kDurationIntervals =
    1 + kNativeBuckets + kClassicBuckets - 3 + 1;  // 3 limits are shared by both

// The interval of a duration. Takes a few nanoseconds.
size_t duration_interval(int64_t ns);

// Upper limits of the classic buckets, in seconds.
std::span<const double> classic_limits();

using IntervalCounts = std::array<uint64_t, kDurationIntervals>;

// Histograms of both kinds, derived from the counts of the intervals. Counts are not cumulative.
struct ClassicCounts {
  std::array<uint64_t, kClassicBuckets + 1> buckets{};  // the last bucket is above all limits
};
struct NativeCounts {
  uint64_t zero_count = 0;  // shorter than the first bucket
  std::array<uint64_t, kNativeBuckets + 1>
      buckets{};  // from kFirstNativeIndex up; the last bucket takes all longer durations
};
ClassicCounts to_classic(const IntervalCounts& counts);
NativeCounts to_native(const IntervalCounts& counts);

}  // namespace tensord::server
