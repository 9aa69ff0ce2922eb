#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "core/base/clock.h"
#include "core/base/error.h"

namespace tensord::server {

inline constexpr int64_t kNoDeadline = std::numeric_limits<int64_t>::max();

// A request in a model's queue. The scheduler owns it, and calls either run() or reject(), exactly once.
class Task {
 public:
  virtual ~Task() = default;

  // Runs the request on worker `worker`, in [0, workers). A worker runs one task at a time. Must not throw.
  virtual void run(size_t worker, int64_t now_ns) = 0;
  // Answers with an error: the request was cancelled, missed its deadline, or the queue is full. Must not throw.
  virtual void reject(ErrorCode code, const char* reason) = 0;
  // May become true at any time. Checked before the task runs.
  virtual bool is_cancelled() const { return false; }

  // Set by the scheduler, on its clock.
  int64_t enqueued_ns = 0;
  uint64_t turn = 0;  // position in the order in which tasks were dispatched, from 0

  // Set by the caller of submit().
  int64_t deadline_ns = kNoDeadline;  // on the scheduler's clock; rejected after it
  uint64_t timeout_us = 0;            // time in the queue, if the queue allows a request to set it; 0: unset
  uint64_t priority = 0;              // 1 is the highest; 0 or an unknown level: the queue's default
  int64_t rows = 1;                   // rows that it adds to a batch
  std::vector<int64_t> batch_key;     // only tasks with equal keys share a batch
};

using TaskPtr = std::unique_ptr<Task>;

}  // namespace tensord::server
