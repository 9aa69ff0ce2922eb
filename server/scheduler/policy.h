#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "server/scheduler/task.h"

namespace tensord::server {

// What a policy hands out: tasks to run together on one worker, and tasks that are not to
// run at all.
struct Batch {
  std::vector<TaskPtr> tasks;
  std::vector<TaskPtr> expired;  // past their deadline, or waited for too long
  std::vector<TaskPtr> cancelled;
  // When nothing is ready yet although tasks wait: ask again at this time.
  int64_t wake_ns = kNoDeadline;

  bool is_empty() const { return tasks.empty() && expired.empty() && cancelled.empty(); }
};

// Decides which waiting tasks run next, and together with which. Pure: no clock, no thread,
// no model; the scheduler calls it under its lock.
class SchedulingPolicy {
 public:
  enum class Added {
    kRefused,  // there is no room; the task stays with the caller
    kWaits,    // next() gives nothing new, and asks for no earlier time, because of it
    kIsReady,  // ask next()
  };

  virtual ~SchedulingPolicy() = default;
  // Takes the task over unless it is refused. Its enqueued_ns is set.
  virtual Added add(TaskPtr& task) = 0;
  virtual Batch next(int64_t now_ns) = 0;
  // What waits and is not to run any more; `looks_for_cancelled` asks every task.
  virtual Batch sweep(int64_t now_ns, bool looks_for_cancelled) = 0;
  // When sweep() is next due because of a task's time; kNoDeadline: never.
  virtual int64_t next_expiry_ns() const = 0;
  // Whether a task that finds the queue empty may run at once.
  virtual bool runs_alone() const = 0;
  virtual size_t size() const = 0;
  // Everything that waits, in order.
  virtual std::vector<TaskPtr> drain() = 0;
};

}  // namespace tensord::server
