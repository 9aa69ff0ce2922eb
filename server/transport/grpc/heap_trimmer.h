#pragma once

#include <cstdint>

#include "server/repository/periodic_thread.h"
#include "server/transport/grpc/request_limits.h"

namespace tensord::server {

// How much of what is free goes back to the system. Pure.
class TrimPolicy {
 public:
  // `max_bytes`: what requests may have; 0: no limit.
  explicit TrimPolicy(uint64_t max_bytes = 0);
  // What is to be kept of `free_bytes`, asked once a second: all that was used within ten seconds, and some.
  uint64_t keep(uint64_t free_bytes);
  // Whether the heap is to be trimmed: requests had far more bytes than they have now.
  bool is_heap_to_trim(uint64_t peak_bytes, uint64_t bytes);

 private:
  const uint64_t kept_bytes_;  // whether they are used or not
  int looks_ = 0;
  uint64_t least_free_ = UINT64_MAX;  // since the last of ten looks
  uint64_t max_bytes_ = 0;            // since the heap was trimmed
};

// Gives memory back to the system that requests had and none needs any more: what the tensors' allocator keeps, and
// what the heap does. Has a thread that looks once a second.
class HeapTrimmer {
 public:
  explicit HeapTrimmer(RequestLimits& limits);

 private:
  void look();

  RequestLimits& limits_;
  TrimPolicy free_;
  PeriodicThread thread_;  // last: it uses the rest
};

}  // namespace tensord::server
