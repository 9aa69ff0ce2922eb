#include "server/scheduler/scheduler.h"

#include <algorithm>
#include <chrono>

#include "core/base/delay_point.h"

namespace tensord::server {
namespace {

void reject_all(std::vector<TaskPtr>& tasks, ErrorCode code, const char* reason) {
  for (TaskPtr& task : tasks) task->reject(code, reason);
}

void reject_dead(Batch& batch) {
  reject_all(batch.expired, ErrorCode::kDeadlineExceeded, "Request timeout expired");
  reject_all(batch.cancelled, ErrorCode::kCancelled, "the request was cancelled");
}

// Waits until a time of the clock; kNoDeadline: until notified. May return early.
void wait_until(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, int64_t until_ns,
                const Clock& clock) {
  if (until_ns == kNoDeadline) {
    changed.wait(lock);
  } else {
    changed.wait_for(lock, std::chrono::nanoseconds(std::max<int64_t>(until_ns - clock.now_ns(), 0)));
  }
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
  TENSORD_DELAY("scheduler.submit");
  using Added = SchedulingPolicy::Added;
  bool is_stopped = false, wakes = false;
  {
    const std::lock_guard lock(mutex_);
    is_stopped = is_stopped_;
    if (!is_stopped) {
      const Added added = policy_->add(task);
      wakes = added == Added::kIsReady && !free_slots_.empty();
      if (added != Added::kRefused) watch_timeouts();
    }
  }
  if (wakes) wake_.notify_one();
  if (!task) return;
  if (is_stopped) {
    task->reject(ErrorCode::kUnavailable, "the model is being unloaded");
  } else {
    task->reject(ErrorCode::kResourceExhausted, "Exceeds maximum queue size");
  }
}

void Scheduler::drop_cancelled() {
  Batch dead;
  {
    const std::lock_guard lock(mutex_);
    if (policy_->size() == 0) return;
    dead = policy_->sweep(clock().now_ns(), /*looks_for_cancelled=*/true);
    if (!dead.is_empty() && policy_->size() > 0 && !free_slots_.empty()) wake_.notify_one();
  }
  reject_dead(dead);
}

void Scheduler::stop() {
  std::vector<TaskPtr> waiting;
  std::thread timekeeper;
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
    waiting = policy_->drain();
    timekeeper = std::move(timekeeper_);
  }
  wake_.notify_all();
  timer_.notify_all();
  if (options_.rate_limiter != nullptr) options_.rate_limiter->stop();
  reject_all(waiting, ErrorCode::kUnavailable, "the model is being unloaded");
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  if (timekeeper.joinable()) timekeeper.join();
}

size_t Scheduler::waiting() const {
  const std::lock_guard lock(mutex_);
  return policy_->size();
}

size_t Scheduler::take_slot() {
  const size_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

bool Scheduler::run_here(TaskPtr& task) {
  size_t slot = 0;
  Permit permit;
  {
    const std::lock_guard lock(mutex_);
    const bool is_late = task->enqueued_ns >= task->deadline_ns;
    if (is_stopped_ || is_late || free_slots_.empty() || policy_->size() != 0 || !policy_->runs_alone()) return false;
    if (options_.rate_limiter != nullptr && !(permit = options_.rate_limiter->try_acquire())) return false;
    slot = take_slot();
    task->turn = next_turn_++;
  }
  task->run(slot, task->enqueued_ns);
  task.reset();
  permit.reset();
  release(slot);
  return true;
}

void Scheduler::release(size_t slot) {
  TENSORD_DELAY("scheduler.release");
  bool has_waiting = false;
  {
    const std::lock_guard lock(mutex_);
    free_slots_.push_back(slot);
    has_waiting = policy_->size() != 0;
  }
  if (has_waiting) wake_.notify_one();
}

std::optional<Scheduler::Work> Scheduler::wait_for_work(Permit before) {
  Work work;
  std::unique_lock lock(mutex_);
  for (;;) {
    if (is_stopped_) return std::nullopt;
    int64_t wake_ns = kNoDeadline;
    if (!free_slots_.empty() && policy_->size() > 0) {
      if (options_.rate_limiter != nullptr && !work.permit) {
        // What to run is chosen when it can run: others may come meanwhile.
        lock.unlock();
        work.permit = options_.rate_limiter->acquire(std::exchange(before, std::nullopt));
        lock.lock();
        continue;
      }
      work.batch = policy_->next(clock().now_ns());
      if (!work.batch.is_empty()) {
        work.slot = take_slot();
        for (TaskPtr& task : work.batch.tasks) task->turn = next_turn_++;
        if (policy_->size() > 0 && !free_slots_.empty()) wake_.notify_one();
        return work;
      }
      wake_ns = work.batch.wake_ns;
    }
    work.permit.reset();
    before.reset();
    wait_until(wake_, lock, wake_ns, clock());
  }
}

void Scheduler::work(size_t thread) {
  if (options_.on_worker_start) options_.on_worker_start(thread);
  Permit before;
  while (std::optional<Work> work = wait_for_work(std::exchange(before, std::nullopt))) {
    TENSORD_DELAY("scheduler.run");
    reject_dead(work->batch);
    std::vector<TaskPtr>& tasks = work->batch.tasks;
    const int64_t now_ns = clock().now_ns();
    if (tasks.size() > 1) {
      options_.run_batch(work->slot, std::move(tasks), now_ns);
    } else if (!tasks.empty()) {
      tasks[0]->run(work->slot, now_ns);
    }
    const size_t slot = work->slot;
    before = std::move(work->permit);
    work.reset();
    release(slot);
  }
}

void Scheduler::watch_timeouts() {
  const int64_t expiry_ns = policy_->next_expiry_ns();
  if (expiry_ns == kNoDeadline) return;
  if (!timekeeper_.joinable()) {
    timer_ns_ = expiry_ns;
    timekeeper_ = std::thread([this] { keep_time(); });
  } else if (expiry_ns < timer_ns_) {
    timer_ns_ = expiry_ns;
    timer_.notify_one();
  }
}

void Scheduler::keep_time() {
  std::unique_lock lock(mutex_);
  while (!is_stopped_) {
    Batch dead = policy_->sweep(clock().now_ns(), /*looks_for_cancelled=*/false);
    if (!dead.is_empty()) {
      lock.unlock();
      reject_dead(dead);
      dead = {};
      lock.lock();
      continue;
    }
    // Without those that went, or behind them, others may be a batch that is ready.
    if (policy_->size() > 0 && !free_slots_.empty()) wake_.notify_one();
    timer_ns_ = policy_->next_expiry_ns();
    wait_until(timer_, lock, timer_ns_, clock());
  }
}

}  // namespace tensord::server
