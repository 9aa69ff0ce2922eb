#include "server/scheduler/policy.h"

namespace tensord::server {

bool FifoPolicy::add(TaskPtr& task) {
  if (waiting_.size() >= capacity_) return false;
  waiting_.push_back(std::move(task));
  return true;
}

Batch FifoPolicy::next(int64_t now_ns) {
  Batch batch;
  while (!waiting_.empty() && batch.tasks.empty()) {
    TaskPtr task = std::move(waiting_.front());
    waiting_.pop_front();
    if (task->is_cancelled()) {
      batch.cancelled.push_back(std::move(task));
    } else if (now_ns >= task->deadline_ns) {
      batch.expired.push_back(std::move(task));
    } else {
      batch.tasks.push_back(std::move(task));
    }
  }
  return batch;
}

std::vector<TaskPtr> FifoPolicy::drain() {
  std::vector<TaskPtr> out;
  for (TaskPtr& task : waiting_) out.push_back(std::move(task));
  waiting_.clear();
  return out;
}

}  // namespace tensord::server
