#include "server/transport/grpc/heap_trimmer.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>

#include "core/tensor/memory/caching_allocator.h"

namespace tensord::server {
namespace {

constexpr int kLooksOfWindow = 10;

// Trimming less than this, or than a quarter of the request quota, is not worthwhile.
constexpr uint64_t kKeptBytes = uint64_t{64} << 20;
constexpr uint64_t kTrimmedPeakBytes = uint64_t{32} << 20;

}  // namespace

TrimPolicy::TrimPolicy(uint64_t max_bytes)
    : kept_bytes_(max_bytes == 0 ? kKeptBytes : std::min(kKeptBytes, max_bytes / 4)) {}

uint64_t TrimPolicy::keep(uint64_t free_bytes) {
  least_free_ = std::min(least_free_, free_bytes);
  if (++looks_ < kLooksOfWindow) return free_bytes;
  const uint64_t unused = least_free_ - std::min(least_free_, kept_bytes_);
  looks_ = 0;
  least_free_ = UINT64_MAX;
  return free_bytes - unused;
}

bool TrimPolicy::is_heap_to_trim(uint64_t peak_bytes, uint64_t bytes) {
  max_bytes_ = std::max(max_bytes_, peak_bytes);
  if (max_bytes_ < kTrimmedPeakBytes || bytes > max_bytes_ / 4) return false;
  max_bytes_ = bytes;
  return true;
}

HeapTrimmer::HeapTrimmer(RequestLimits& limits)
    : limits_(limits), free_(limits.max_bytes()), thread_(std::chrono::seconds(1), [this] { look(); }) {}

void HeapTrimmer::look() {
  const uint64_t free_bytes = cpu_allocator().stats().cached_bytes;
  const uint64_t kept = free_.keep(free_bytes);
  if (kept < free_bytes) cpu_allocator().trim(kept);
  if (free_.is_heap_to_trim(limits_.take_peak(), limits_.bytes())) malloc_trim(0);
}

}  // namespace tensord::server
