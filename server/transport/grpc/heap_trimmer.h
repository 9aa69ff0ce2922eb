#pragma once

#include <cstdint>

#include "server/repository/periodic_thread.h"
#include "server/transport/grpc/request_limits.h"

namespace tensord::server {

// Decides how much free memory to return to the system. It has no clock and no thread.
class TrimPolicy {
 public:
  // `max_bytes`: limit of requests' memory; 0: no limit.
  explicit TrimPolicy(uint64_t max_bytes = 0);
  // How much of `free_bytes` to keep. Called once a second: keeps what was used in the last ten seconds, plus a
  // reserve.
  uint64_t keep(uint64_t free_bytes);
  // Whether to trim the heap, because requests had far more bytes than they have now.
  bool is_heap_to_trim(uint64_t peak_bytes, uint64_t bytes);

 private:
  const uint64_t kept_bytes_;  // always kept
  int looks_ = 0;
  uint64_t least_free_ = UINT64_MAX;  // in the current ten seconds
  uint64_t max_bytes_ = 0;            // since the last trim
};

// Returns memory to the system that requests no longer need: free blocks of the tensors' allocator, and the heap.
// Checks once a second on a thread of its own.
class HeapTrimmer {
 public:
  explicit HeapTrimmer(RequestLimits& limits);

 private:
  void look();

  RequestLimits& limits_;
  TrimPolicy free_;
  PeriodicThread thread_;  // last: it uses the other members
};

}  // namespace tensord::server
