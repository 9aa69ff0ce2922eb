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

// The threads that the models of a daemon run on. One is made when something is to run and all that are there are busy,
// up to `most`; what comes beyond that waits its turn. Those that were idle for `idle_time` end, but for as many as
// there are cores. The thread that was idle last is taken first: what it ran is still in its caches. Thread-safe.
class WorkerPool {
 public:
  // Throws Error{kResourceExhausted} where not even one thread is to be had.
  explicit WorkerPool(size_t max = kDefaultMost, std::chrono::milliseconds idle_time = std::chrono::seconds(10));
  // REQUIRES: nothing that was posted is left, and no alarm.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Calls `fn` once on one of the threads, soon.
  void post(std::function<void()> fn);
  // Something waits for a thread: who has run for a while should post what is left, and return.
  bool is_waited_for() const { return waiting_.load(std::memory_order_relaxed) > 0; }
  size_t threads() const;

  // Calls a function at a time, on a thread that all alarms of the pool share: it must not take long.
  class Alarm {
   public:
    Alarm(WorkerPool& pool, std::function<void()> fn) : pool_(pool), fn_(std::move(fn)) {}
    // Waits for `fn` where it runs just now.
    ~Alarm() { stop(); }
    Alarm(const Alarm&) = delete;
    Alarm& operator=(const Alarm&) = delete;
    // `delay_ns` from now, once; takes the place of an earlier call. INT64_MAX: never.
    void set(int64_t delay_ns) { pool_.set_alarm(*this, delay_ns); }
    // It does not ring any more. Not to be called by `fn`.
    void stop() { pool_.stop_alarm(*this); }

   private:
    friend class WorkerPool;
    WorkerPool& pool_;
    const std::function<void()> fn_;
    // By timer_mutex_ of the pool, which clang cannot tell from another pool's.
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
  const size_t kept_;  // threads that stay when they are idle
  const std::chrono::milliseconds idle_time_;
  mutable Mutex mutex_;
  std::list<Worker> workers_ TENSORD_GUARDED_BY(mutex_);
  std::vector<Worker*> idle_ TENSORD_GUARDED_BY(mutex_);  // the one that was busy last at the end
  std::deque<std::function<void()>> tasks_ TENSORD_GUARDED_BY(mutex_);
  std::atomic<size_t> waiting_{0};  // size of tasks_
  bool is_stopped_ TENSORD_GUARDED_BY(mutex_) = false;

  Mutex timer_mutex_;
  CondVar timer_changed_, alarm_done_;
  std::multimap<int64_t, Alarm*> alarms_ TENSORD_GUARDED_BY(timer_mutex_);
  bool is_timer_stopped_ TENSORD_GUARDED_BY(timer_mutex_) = false;
  Thread timer_;  // by timer_mutex_ until stopped; made by the first alarm
};

}  // namespace tensord::server
