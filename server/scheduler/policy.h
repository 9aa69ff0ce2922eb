#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "server/scheduler/task.h"

namespace tensord::server {

// The tasks to run together on one worker, and the tasks to reject.
struct Batch {
  std::vector<TaskPtr> tasks;
  std::vector<TaskPtr> expired;  // past their deadline, or waited for too long
  std::vector<TaskPtr> cancelled;
  // If no task is ready but some wait: the time to call next() again.
  int64_t wake_ns = kNoDeadline;

  bool is_empty() const { return tasks.empty() && expired.empty() && cancelled.empty(); }
};

// Decides which waiting tasks run next and which of them share a batch. It has no clock, thread or model of its own;
// the scheduler calls it under its lock.
class SchedulingPolicy {
 public:
  enum class Added {
    kRefused,  // the queue is full; the caller keeps the task
    kWaits,    // the result of next() does not change
    kIsReady,  // call next()
  };

  virtual ~SchedulingPolicy() = default;
  // Takes ownership of the task unless it is refused. REQUIRES: task->enqueued_ns is set.
  virtual Added add(TaskPtr& task) = 0;
  virtual Batch next(int64_t now_ns) = 0;
  // Removes expired tasks, and with `looks_for_cancelled` cancelled ones too, which visits every task.
  virtual Batch sweep(int64_t now_ns, bool looks_for_cancelled) = 0;
  // When the next task expires; kNoDeadline: never.
  virtual int64_t next_expiry_ns() const = 0;
  // Whether a task that arrives at an empty queue may run at once.
  virtual bool runs_alone() const = 0;
  virtual size_t size() const = 0;
  // Removes all tasks, in queue order.
  virtual std::vector<TaskPtr> drain() = 0;
};

}  // namespace tensord::server
