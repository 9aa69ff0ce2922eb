#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/base/clock.h"
#include "server/scheduler/policy.h"

namespace tensord::server {

// A bounded queue in front of the workers of one model. There are N slots to run in (a slot is
// what a task gets as its worker number) and N threads that ask the policy what to run. A task
// known to be short may run on the thread that submits it, in a free slot, which saves it two
// thread switches. Thread-safe.
class Scheduler {
 public:
  struct Options {
    int workers = 1;
    // Runs at the start of each worker's thread: thread budget, memory owner.
    std::function<void(size_t worker)> on_worker_start;
    const Clock* clock = &Clock::system();
  };

  Scheduler(std::unique_ptr<SchedulingPolicy> policy, Options options);
  // Stops as stop() does.
  ~Scheduler();

  // Takes the task over; rejects it with kResourceExhausted when the queue is full and with
  // kUnavailable after stop(). With `may_run_here` it runs before this returns when a slot is
  // free and nothing waits.
  void submit(TaskPtr task, bool may_run_here = false);
  // Rejects what waits with kUnavailable, lets what runs end, joins the threads.
  void stop();

  size_t waiting() const;
  size_t workers() const { return static_cast<size_t>(options_.workers); }
  const Clock& clock() const { return *options_.clock; }

 private:
  void work(size_t thread);
  // A batch and the slot to run it in; none when stopped.
  std::optional<size_t> wait_for_batch(Batch& batch);
  bool run_here(TaskPtr& task);
  void release(size_t slot);

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::unique_ptr<SchedulingPolicy> policy_;  // by mutex_
  std::vector<size_t> free_slots_;            // by mutex_
  bool is_stopped_ = false;                   // by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace tensord::server
