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

// A bounded queue in front of the workers of one model. There are N slots to run in (a slot is
// what a task gets as its worker number), and at most N threads of a pool, taken while there is something to run, that
// ask the policy what. A task known to be short may run on the thread that submits it, in a free slot, which saves it
// two thread switches. Thread-safe.
class Scheduler {
 public:
  struct Options {
    int workers = 1;
    WorkerPool* pool = nullptr;  // outlives this; null: one of its own
    // Runs the tasks of a batch of several as Task::run would each; needed where the policy makes such. Must not throw.
    std::function<void(size_t worker, std::vector<TaskPtr> tasks, int64_t now_ns)> run_batch;
    RateLimiter::Client* rate_limiter = nullptr;  // whose permit every run holds; null: none
    const Clock* clock = &Clock::system();
  };

  Scheduler(std::unique_ptr<SchedulingPolicy> policy, Options options);
  // Stops as stop() does.
  ~Scheduler();

  // Takes the task over; rejects it with kResourceExhausted when the queue is full and with
  // kUnavailable after stop(). With `may_run_here` it runs before this returns when a slot is
  // free, nothing waits, and the policy does not let tasks wait for others.
  void submit(TaskPtr task, bool may_run_here = false);
  // Rejects those of the waiting tasks that are cancelled, at once.
  void drop_cancelled();
  // Rejects what waits with kUnavailable, lets what runs end, joins the threads.
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
  // A batch and the slot to run it in; none where there is nothing to wait for, and the thread counts no more. Takes
  // the permit of the run before.
  std::optional<Work> wait_for_work(Permit before);
  // Somebody is to ask the policy.
  void wake() TENSORD_REQUIRES(mutex_);
  bool run_here(TaskPtr& task);
  size_t take_slot() TENSORD_REQUIRES(mutex_);
  void release(size_t slot);
  bool release_and_go_on(size_t slot, Permit& permit);
  // Rejects tasks that waited for too long while all workers are busy.
  void on_timeout();
  void watch_timeouts() TENSORD_REQUIRES(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  CondVar wake_;
  std::unique_ptr<SchedulingPolicy> policy_ TENSORD_GUARDED_BY(mutex_);
  std::vector<size_t> free_slots_ TENSORD_GUARDED_BY(mutex_);
  uint64_t next_turn_ TENSORD_GUARDED_BY(mutex_) = 0;
  bool is_stopped_ TENSORD_GUARDED_BY(mutex_) = false;
  size_t threads_ TENSORD_GUARDED_BY(mutex_) = 0;              // that are here, or on their way
  size_t sleeping_ TENSORD_GUARDED_BY(mutex_) = 0;             // of these, waiting for a time
  CondVar gone_;                                               // threads_ became 0
  int64_t timer_ns_ TENSORD_GUARDED_BY(mutex_) = kNoDeadline;  // when the alarm rings
  std::unique_ptr<WorkerPool> own_pool_;
  WorkerPool& pool_;
  WorkerPool::Alarm alarm_;  // last: it uses the rest
};

}  // namespace tensord::server
