#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/clock.h"
#include "server/scheduler/policy.h"

namespace tensord::server {

// A bounded queue in front of the workers of one model: N threads that ask the policy what to
// run. Thread-safe.
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
  // kUnavailable after stop().
  void submit(TaskPtr task);
  // Rejects what waits with kUnavailable, lets what runs end, joins the threads.
  void stop();

  size_t waiting() const;
  size_t workers() const { return static_cast<size_t>(options_.workers); }
  const Clock& clock() const { return *options_.clock; }

 private:
  void work(size_t worker);
  Batch wait_for_batch(bool* stopped);

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::unique_ptr<SchedulingPolicy> policy_;  // by mutex_
  bool is_stopped_ = false;                   // by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace tensord::server
