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
  for (size_t i = workers(); i-- > 0;) free_slots_.push_back(i);
  for (size_t i = 0; i < workers(); ++i) threads_.emplace_back([this, i] { work(i); });
}

Scheduler::~Scheduler() { stop(); }

void Scheduler::submit(TaskPtr task, bool may_run_here) {
  task->enqueued_ns = clock().now_ns();
  if (may_run_here && run_here(task)) return;
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

bool Scheduler::run_here(TaskPtr& task) {
  size_t slot = 0;
  {
    const std::lock_guard lock(mutex_);
    const bool is_late = task->enqueued_ns >= task->deadline_ns;
    if (is_stopped_ || is_late || free_slots_.empty() || policy_->size() != 0) return false;
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  task->run(slot, task->enqueued_ns);
  task.reset();
  release(slot);
  return true;
}

void Scheduler::release(size_t slot) {
  bool has_waiting = false;
  {
    const std::lock_guard lock(mutex_);
    free_slots_.push_back(slot);
    has_waiting = policy_->size() != 0;
  }
  if (has_waiting) wake_.notify_one();
}

std::optional<size_t> Scheduler::wait_for_batch(Batch& batch) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (is_stopped_) return std::nullopt;
    int64_t wake_ns = kNoDeadline;
    if (!free_slots_.empty()) {
      batch = policy_->next(clock().now_ns());
      if (!batch.tasks.empty() || !batch.expired.empty() || !batch.cancelled.empty()) {
        const size_t slot = free_slots_.back();
        free_slots_.pop_back();
        return slot;
      }
      wake_ns = batch.wake_ns;
    }
    if (wake_ns == kNoDeadline) {
      wake_.wait(lock);
    } else {
      const int64_t wait_ns = std::max<int64_t>(wake_ns - clock().now_ns(), 0);
      wake_.wait_for(lock, std::chrono::nanoseconds(wait_ns));
    }
  }
}

void Scheduler::work(size_t thread) {
  if (options_.on_worker_start) options_.on_worker_start(thread);
  for (;;) {
    Batch batch;
    const std::optional<size_t> slot = wait_for_batch(batch);
    if (!slot) return;
    reject_all(batch.expired, ErrorCode::kDeadlineExceeded, "Request timeout expired");
    reject_all(batch.cancelled, ErrorCode::kCancelled, "the request was cancelled");
    const int64_t now_ns = clock().now_ns();
    for (TaskPtr& task : batch.tasks) task->run(*slot, now_ns);
    batch = {};
    release(*slot);
  }
}

}  // namespace tensord::server
