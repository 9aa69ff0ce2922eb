#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tensord::server {

// Durations are counted in intervals that each lie in one bucket of two histograms: a classic one with decimal limits
// from 50 us to 10 s, and a native one of Prometheus, whose limits are powers of 2^(1/4) from 2^-20 to 2^7 seconds. One
// addition counts for both. Limits belong to the interval that they end.
inline constexpr int kNativeSchema = 2;        // limits are powers of 2^(2^-kNativeSchema)
inline constexpr int kFirstNativeIndex = -79;  // (2^(-80/4), 2^(-79/4)] seconds; what is shorter counts as zero
inline constexpr size_t kNativeBuckets = 108;  // up to 2^(28/4) seconds
inline constexpr size_t kClassicBuckets = 17;  // with a limit; longer durations are in a last one without
inline constexpr size_t kDurationIntervals = 1 + kNativeBuckets + kClassicBuckets - 3 + 1;  // 3 limits are in both

// The interval that a duration lies in. A few nanoseconds.
size_t duration_interval(int64_t ns);

// Upper limits of the classic buckets in seconds.
std::span<const double> classic_limits();

using IntervalCounts = std::array<uint64_t, kDurationIntervals>;

// A histogram of each kind, made of the counts of all intervals. Not cumulative.
struct ClassicCounts {
  std::array<uint64_t, kClassicBuckets + 1> buckets{};  // the last one has what is above all limits
};
struct NativeCounts {
  uint64_t zero_count = 0;                             // shorter than the first bucket
  std::array<uint64_t, kNativeBuckets + 1> buckets{};  // of kFirstNativeIndex and up; the last has all that is longer
};
ClassicCounts to_classic(const IntervalCounts& counts);
NativeCounts to_native(const IntervalCounts& counts);

}  // namespace tensord::server
