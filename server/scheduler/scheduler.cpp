#include "server/scheduler/scheduler.h"

#include <algorithm>
#include <chrono>

namespace tensord::server {
namespace {

void reject_all(std::vector<TaskPtr>& tasks, ErrorCode code, const char* reason) {
  for (TaskPtr& task : tasks) task->reject(code, reason);
}

}  // namespace

Scheduler::Scheduler(std::unique_ptr<SchedulingPolicy> policy, Options options)
    : options_(std::move(options)), policy_(std::move(policy)) {
  for (size_t i = 0; i < workers(); ++i) threads_.emplace_back([this, i] { work(i); });
}

Scheduler::~Scheduler() { stop(); }

void Scheduler::submit(TaskPtr task) {
  task->enqueued_ns = clock().now_ns();
  bool is_stopped = false;
  {
    const std::lock_guard lock(mutex_);
    is_stopped = is_stopped_;
    if (!is_stopped) policy_->add(task);
  }
  if (!task) {
    wake_.notify_one();
  } else if (is_stopped) {
    task->reject(ErrorCode::kUnavailable, "the model is being unloaded");
  } else {
    task->reject(ErrorCode::kResourceExhausted, "Exceeds maximum queue size");
  }
}

void Scheduler::stop() {
  std::vector<TaskPtr> waiting;
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
    waiting = policy_->drain();
  }
  wake_.notify_all();
  reject_all(waiting, ErrorCode::kUnavailable, "the model is being unloaded");
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

size_t Scheduler::waiting() const {
  const std::lock_guard lock(mutex_);
  return policy_->size();
}

Batch Scheduler::wait_for_batch(bool* stopped) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if ((*stopped = is_stopped_)) return {};
    Batch batch = policy_->next(clock().now_ns());
    if (!batch.tasks.empty() || !batch.expired.empty() || !batch.cancelled.empty()) return batch;
    if (batch.wake_ns == kNoDeadline) {
      wake_.wait(lock);
    } else {
      const int64_t wait_ns = std::max<int64_t>(batch.wake_ns - clock().now_ns(), 0);
      wake_.wait_for(lock, std::chrono::nanoseconds(wait_ns));
    }
  }
}

void Scheduler::work(size_t worker) {
  if (options_.on_worker_start) options_.on_worker_start(worker);
  bool stopped = false;
  for (;;) {
    Batch batch = wait_for_batch(&stopped);
    if (stopped) return;
    reject_all(batch.expired, ErrorCode::kDeadlineExceeded, "Request timeout expired");
    reject_all(batch.cancelled, ErrorCode::kCancelled, "the request was cancelled");
    const int64_t now_ns = clock().now_ns();
    for (TaskPtr& task : batch.tasks) task->run(worker, now_ns);
  }
}

}  // namespace tensord::server
