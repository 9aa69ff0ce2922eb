#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/thread.h"

namespace tensord::server {

// The threads that run the models of a daemon. A thread is started when a function is posted and all threads are busy,
// up to `max`; further functions are queued. Threads that are idle for `idle_time` end, except for one per core. The
// thread that became idle last is used first, because its caches are warm. Thread-safe.
class WorkerPool {
 public:
  // Throws Error{kResourceExhausted} if the system has no thread for it.
  explicit WorkerPool(size_t max = kDefaultMost, std::chrono::milliseconds idle_time = std::chrono::seconds(10));
  // REQUIRES: all posted functions have run, and all alarms are destroyed.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Calls `fn` once on one of the threads.
  void post(std::function<void()> fn);
  // Whether posted functions wait for a thread. A long-running function should then post the rest of its work and
  // return.
  bool is_waited_for() const { return waiting_.load(std::memory_order_relaxed) > 0; }
  size_t threads() const;

  // Calls a function at a given time, on a thread that all alarms of the pool share, so `fn` must be short.
  class Alarm {
   public:
    Alarm(WorkerPool& pool, std::function<void()> fn) : pool_(pool), fn_(std::move(fn)) {}
    // Waits for `fn` if it is running.
    ~Alarm() { stop(); }
    Alarm(const Alarm&) = delete;
    Alarm& operator=(const Alarm&) = delete;
    // Calls `fn` once, `delay_ns` from now, instead of at the time set before. INT64_MAX: never.
    void set(int64_t delay_ns) { pool_.set_alarm(*this, delay_ns); }
    // `fn` is not called any more. `fn` itself must not call stop().
    void stop() { pool_.stop_alarm(*this); }

   private:
    friend class WorkerPool;
    WorkerPool& pool_;
    const std::function<void()> fn_;
    // Guarded by the pool's timer_mutex_. Clang's analysis cannot tell it from another pool's.
    int64_t at_ns_ = INT64_MAX;
    bool rings_ = false, is_stopped_ = false;
  };

 private:
  static constexpr size_t kDefaultMost = 256;

  struct Worker {
    CondVar changed;
    std::function<void()> task;
    bool is_over = false;
    Thread thread;
  };

  void start();
  void stop_timer();
  void stop_workers();
  void add_worker() TENSORD_REQUIRES(mutex_);
  void work(Worker& me);
  bool wait_for_task(Worker& me, MutexLock& lock) TENSORD_REQUIRES(mutex_);
  void set_alarm(Alarm& alarm, int64_t delay_ns);
  void stop_alarm(Alarm& alarm);
  void keep_time();

  const size_t max_;
  const size_t kept_;  // idle threads that do not end
  const std::chrono::milliseconds idle_time_;
  mutable Mutex mutex_;
  std::list<Worker> workers_ TENSORD_GUARDED_BY(mutex_);
  std::vector<Worker*> idle_ TENSORD_GUARDED_BY(mutex_);  // ordered by when they became idle
  std::deque<std::function<void()>> tasks_ TENSORD_GUARDED_BY(mutex_);
  std::atomic<size_t> waiting_{0};  // size of tasks_
  bool is_stopped_ TENSORD_GUARDED_BY(mutex_) = false;

  Mutex timer_mutex_;
  CondVar timer_changed_, alarm_done_;
  std::multimap<int64_t, Alarm*> alarms_ TENSORD_GUARDED_BY(timer_mutex_);
  bool is_timer_stopped_ TENSORD_GUARDED_BY(timer_mutex_) = false;
  Thread timer_;  // started by the first alarm; guarded by timer_mutex_ until stopped
};

}  // namespace tensord::server
