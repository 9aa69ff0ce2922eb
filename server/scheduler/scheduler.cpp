#include "server/scheduler/scheduler.h"

#include <algorithm>
#include <chrono>

#include "core/base/delay_point.h"
#include "core/base/error.h"
#include "core/base/mutex.h"

namespace tensord::server {
namespace {

void reject_all(std::vector<TaskPtr>& tasks, ErrorCode code, const char* reason) {
  for (TaskPtr& task : tasks) task->reject(code, reason);
}

void reject_dead(Batch& batch) {
  reject_all(batch.expired, ErrorCode::kDeadlineExceeded, "Request timeout expired");
  reject_all(batch.cancelled, ErrorCode::kCancelled, "the request was cancelled");
}

// Waits until `until_ns`, or for a notification if it is kNoDeadline. May return early.
void wait_until(CondVar& changed, MutexLock& lock, int64_t until_ns, const Clock& clock) {
  if (until_ns == kNoDeadline) {
    changed.wait(lock);
  } else {
    changed.wait_for(lock, std::chrono::nanoseconds(std::max<int64_t>(until_ns - clock.now_ns(), 0)));
  }
}

}  // namespace

Scheduler::Scheduler(std::unique_ptr<SchedulingPolicy> policy, Options options)
    : options_(std::move(options)),
      policy_(std::move(policy)),
      own_pool_(options_.pool ? nullptr : std::make_unique<WorkerPool>()),
      pool_(options_.pool ? *options_.pool : *own_pool_),
      alarm_(pool_, [this] { on_timeout(); }) {
  for (size_t i = workers(); i-- > 0;) free_slots_.push_back(i);
}

Scheduler::~Scheduler() { stop(); }

void Scheduler::submit(TaskPtr task, bool may_run_here) {
  task->enqueued_ns = clock().now_ns();
  if (may_run_here && run_here(task)) return;
  TENSORD_DELAY("scheduler.submit");
  using Added = SchedulingPolicy::Added;
  bool is_stopped = false;
  {
    const MutexLock lock(mutex_);
    is_stopped = is_stopped_;
    if (!is_stopped) {
      const Added added = policy_->add(task);
      if (added == Added::kIsReady && !free_slots_.empty()) wake();
      if (added != Added::kRefused) watch_timeouts();
    }
  }
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
    const MutexLock lock(mutex_);
    if (policy_->size() == 0) return;
    dead = policy_->sweep(clock().now_ns(), /*looks_for_cancelled=*/true);
    if (!dead.is_empty() && policy_->size() > 0 && !free_slots_.empty()) wake();
  }
  reject_dead(dead);
}

void Scheduler::stop() {
  std::vector<TaskPtr> waiting;
  {
    const MutexLock lock(mutex_);
    is_stopped_ = true;
    waiting = policy_->drain();
  }
  wake_.notify_all();
  if (options_.rate_limiter != nullptr) options_.rate_limiter->stop();
  reject_all(waiting, ErrorCode::kUnavailable, "the model is being unloaded");
  {
    MutexLock lock(mutex_);
    gone_.wait(lock, [this]() TENSORD_REQUIRES(mutex_) { return threads_ == 0; });
  }
  alarm_.stop();
}

void Scheduler::wake() {
  if (sleeping_ > 0) {
    wake_.notify_one();
  } else if (threads_ < workers()) {
    ++threads_;
    pool_.post([this] { work(); });
  }
}

size_t Scheduler::waiting() const {
  const MutexLock lock(mutex_);
  return policy_->size();
}

size_t Scheduler::take_slot(const Permit& permit) {
  auto found = std::prev(free_slots_.end());
  if (permit) {
    found = std::ranges::find(free_slots_, permit->device(),
                              [this](size_t slot) { return options_.rate_limiter->device_of(slot); });
    check_internal(found != free_slots_.end(), "a run is allowed on a device without a free worker");
  }
  const size_t slot = *found;
  free_slots_.erase(found);
  return slot;
}

bool Scheduler::run_here(TaskPtr& task) {
  size_t slot = 0;
  Permit permit;
  {
    const MutexLock lock(mutex_);
    const bool is_late = task->enqueued_ns >= task->deadline_ns;
    if (is_stopped_ || is_late || free_slots_.empty() || policy_->size() != 0 || !policy_->runs_alone()) return false;
    if (options_.rate_limiter != nullptr && !(permit = options_.rate_limiter->try_acquire())) return false;
    slot = take_slot(permit);
    task->turn = next_turn_++;
  }
  task->run(slot, task->enqueued_ns);
  task.reset();
  release(slot);  // before the permit, for which there is a slot
  return true;
}

void Scheduler::release(size_t slot) {
  TENSORD_DELAY("scheduler.release");
  const MutexLock lock(mutex_);
  free_slots_.push_back(slot);
  if (policy_->size() != 0) wake();
}

std::optional<Scheduler::Work> Scheduler::wait_for_work(Permit before) {
  Work work;
  MutexLock lock(mutex_);
  for (;;) {
    if (is_stopped_) break;
    int64_t wake_ns = kNoDeadline;
    if (!free_slots_.empty() && policy_->size() > 0) {
      if (options_.rate_limiter != nullptr && !work.permit) {
        // The batch is chosen once it can run, because more tasks may arrive until then.
        lock.unlock();
        work.permit = options_.rate_limiter->acquire(std::exchange(before, std::nullopt));
        lock.lock();
        continue;
      }
      work.batch = policy_->next(clock().now_ns());
      if (!work.batch.is_empty()) {
        work.slot = take_slot(work.permit);
        for (TaskPtr& task : work.batch.tasks) task->turn = next_turn_++;
        if (policy_->size() > 0 && !free_slots_.empty()) wake();
        return work;
      }
      wake_ns = work.batch.wake_ns;
    }
    work.permit.reset();
    before.reset();
    // One thread is enough to wait for the policy's wake time; a new task wakes another.
    if (wake_ns == kNoDeadline || sleeping_ > 0) break;
    ++sleeping_;
    wait_until(wake_, lock, wake_ns, clock());
    --sleeping_;
  }
  work.permit.reset();
  before.reset();  // once threads_ is 0, this object and the rate limiter may be destroyed
  if (--threads_ == 0) gone_.notify_all();
  return std::nullopt;
}

void Scheduler::work() {
  Permit before;
  while (std::optional<Work> work = wait_for_work(std::exchange(before, std::nullopt))) {
    TENSORD_DELAY("scheduler.run");
    run_logged("worker", [&] { run(*work); });
    const size_t slot = work->slot;
    before = std::move(work->permit);
    work.reset();
    if (!release_and_go_on(slot, before)) return;
  }
}

void Scheduler::run(Work& work) {
  reject_dead(work.batch);
  std::vector<TaskPtr>& tasks = work.batch.tasks;
  const int64_t now_ns = clock().now_ns();
  if (tasks.size() > 1) {
    options_.run_batch(work.slot, std::move(tasks), now_ns);
  } else if (!tasks.empty()) {
    tasks[0]->run(work.slot, now_ns);
  }
}

// Returns false if this thread should return to the pool.
bool Scheduler::release_and_go_on(size_t slot, Permit& permit) {
  TENSORD_DELAY("scheduler.release");
  const MutexLock lock(mutex_);
  free_slots_.push_back(slot);
  if (is_stopped_ || !pool_.is_waited_for()) return true;
  permit.reset();
  // Other models wait for a thread, so this model queues behind them.
  if (policy_->size() > 0) {
    pool_.post([this] { this->work(); });
  } else if (--threads_ == 0) {
    gone_.notify_all();
  }
  return false;
}

void Scheduler::watch_timeouts() {
  const int64_t expiry_ns = policy_->next_expiry_ns();
  if (expiry_ns >= timer_ns_) return;
  timer_ns_ = expiry_ns;
  alarm_.set(expiry_ns - clock().now_ns());
}

void Scheduler::on_timeout() {
  Batch dead;
  {
    const MutexLock lock(mutex_);
    timer_ns_ = kNoDeadline;
    if (is_stopped_) return;
    dead = policy_->sweep(clock().now_ns(), /*looks_for_cancelled=*/false);
    // Without the removed tasks, the others may form a batch that is ready.
    if (policy_->size() > 0 && !free_slots_.empty()) wake();
    watch_timeouts();
  }
  reject_dead(dead);
}

}  // namespace tensord::server
