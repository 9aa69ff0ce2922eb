#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/clock.h"
#include "core/base/mutex.h"
#include "server/scheduler/policy.h"
#include "server/scheduler/rate_limiter.h"
#include "server/scheduler/worker_pool.h"

namespace tensord::server {

// The bounded queue and the workers of one model. A task runs in one of N slots; the slot's index is the task's worker
// number. Up to N threads of a pool serve the slots while there are tasks. A task that is known to be short may run on
// the thread that submits it, which saves two thread switches. Thread-safe.
class Scheduler {
 public:
  struct Options {
    int workers = 1;
    WorkerPool* pool = nullptr;  // must outlive the scheduler; null: a pool of its own
    // Runs a batch of several tasks in place of Task::run. Required if the policy makes batches. Must not throw.
    std::function<void(size_t worker, std::vector<TaskPtr> tasks, int64_t now_ns)> run_batch;
    RateLimiter::Client* rate_limiter = nullptr;  // every run holds one of its permits; null: no limit
    const Clock* clock = &Clock::system();
  };

  Scheduler(std::unique_ptr<SchedulingPolicy> policy, Options options);
  // Calls stop().
  ~Scheduler();

  // Takes ownership of the task. Rejects it with kResourceExhausted if the queue is full and with kUnavailable after
  // stop(). With `may_run_here`, runs it on the calling thread if a slot is free, the queue is empty and the policy
  // does not delay tasks.
  void submit(TaskPtr task, bool may_run_here = false);
  // Rejects the cancelled tasks in the queue now.
  void drop_cancelled();
  // Rejects all waiting tasks with kUnavailable and waits until the running ones have finished.
  void stop();

  size_t waiting() const;
  size_t workers() const { return static_cast<size_t>(options_.workers); }
  const Clock& clock() const { return *options_.clock; }

 private:
  using Permit = std::optional<RateLimiter::Permit>;
  struct Work {
    size_t slot = 0;
    Batch batch;
    Permit permit;
  };

  void work();
  void run(Work& work);
  // Waits for a batch and takes a slot for it. None: the thread has no work and was removed from threads_. `before` is
  // the permit of the previous run.
  std::optional<Work> wait_for_work(Permit before);
  // Makes sure that a thread calls the policy.
  void wake() TENSORD_REQUIRES(mutex_);
  bool run_here(TaskPtr& task);
  // A free slot; on the permit's device, which has one for each permit.
  size_t take_slot(const Permit& permit) TENSORD_REQUIRES(mutex_);
  void release(size_t slot);
  bool release_and_go_on(size_t slot, Permit& permit);
  // Rejects expired tasks while all workers are busy.
  void on_timeout();
  void watch_timeouts() TENSORD_REQUIRES(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  CondVar wake_;
  std::unique_ptr<SchedulingPolicy> policy_ TENSORD_GUARDED_BY(mutex_);
  std::vector<size_t> free_slots_ TENSORD_GUARDED_BY(mutex_);
  uint64_t next_turn_ TENSORD_GUARDED_BY(mutex_) = 0;
  bool is_stopped_ TENSORD_GUARDED_BY(mutex_) = false;
  size_t threads_ TENSORD_GUARDED_BY(mutex_) = 0;              // of the pool, working here or posted
  size_t sleeping_ TENSORD_GUARDED_BY(mutex_) = 0;             // of threads_, waiting for the policy's wake time
  CondVar gone_;                                               // signals that threads_ is 0
  int64_t timer_ns_ TENSORD_GUARDED_BY(mutex_) = kNoDeadline;  // when the alarm fires
  std::unique_ptr<WorkerPool> own_pool_;
  WorkerPool& pool_;
  WorkerPool::Alarm alarm_;  // last: its function uses the other members
};

}  // namespace tensord::server
