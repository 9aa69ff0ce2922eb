#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "core/base/clock.h"
#include "core/base/error.h"

namespace tensord::server {

inline constexpr int64_t kNoDeadline = std::numeric_limits<int64_t>::max();

// One request waiting to run. The scheduler takes it over, and either runs it on a worker or
// rejects it; exactly one of the two happens, once.
class Task {
 public:
  virtual ~Task() = default;

  // Runs as worker `worker` (0 … workers-1); nothing else runs as that one meanwhile. Must not throw.
  virtual void run(size_t worker, int64_t now_ns) = 0;
  // It will not run: cancelled, too late, or no room. Must not throw.
  virtual void reject(ErrorCode code, const char* reason) = 0;
  // May turn true at any time; asked before it runs.
  virtual bool is_cancelled() const { return false; }

  // Set by the scheduler, on its clock.
  int64_t enqueued_ns = 0;
  uint64_t turn = 0;  // 0, 1, 2 … in the order in which tasks were handed out to run

  // Set by who submits it.
  int64_t deadline_ns = kNoDeadline;  // on the scheduler's clock; not run after it
  uint64_t timeout_us = 0;            // how long it may wait, where the queue lets tasks say so; 0: not said
  uint64_t priority = 0;              // 1 is highest; 0 or one that is not there: the queue's default
  int64_t rows = 1;                   // of a batch that it fills
  std::vector<int64_t> batch_key;     // tasks whose keys are equal may share a batch
};

using TaskPtr = std::unique_ptr<Task>;

}  // namespace tensord::server
