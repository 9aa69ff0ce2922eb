#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "server/scheduler/task.h"

namespace tensord::server {

// What a policy hands out: tasks to run together on one worker, and tasks that are not to
// run at all.
struct Batch {
  std::vector<TaskPtr> tasks;
  std::vector<TaskPtr> expired;  // past their deadline
  std::vector<TaskPtr> cancelled;
  // When nothing is ready yet although tasks wait: ask again at this time.
  int64_t wake_ns = kNoDeadline;
};

// Decides which waiting tasks run next, and together with which. Pure: no clock, no thread,
// no model; the scheduler calls it under its lock.
class SchedulingPolicy {
 public:
  virtual ~SchedulingPolicy() = default;
  // Takes the task, or leaves it with the caller and gives back false when there is no room.
  virtual bool add(TaskPtr& task) = 0;
  virtual Batch next(int64_t now_ns) = 0;
  virtual size_t size() const = 0;
  // Everything that waits, in order.
  virtual std::vector<TaskPtr> drain() = 0;
};

// First come, first served, one at a time, at most `capacity` waiting.
class FifoPolicy final : public SchedulingPolicy {
 public:
  explicit FifoPolicy(size_t capacity) : capacity_(capacity) {}
  bool add(TaskPtr& task) override;
  Batch next(int64_t now_ns) override;
  size_t size() const override { return waiting_.size(); }
  std::vector<TaskPtr> drain() override;

 private:
  size_t capacity_;
  std::deque<TaskPtr> waiting_;
};

}  // namespace tensord::server
