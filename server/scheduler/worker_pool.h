#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <vector>

#include "core/base/thread.h"

namespace tensord::server {

// The threads that the models of a daemon run on. One is made when something is to run and all that are there are busy,
// up to `most`; what comes beyond that waits its turn. Those that were idle for `idle_time` end, but for as many as
// there are cores. The thread that was idle last is taken first: what it ran is still in its caches. Thread-safe.
class WorkerPool {
 public:
  // Throws Error{kResourceExhausted} where not even one thread is to be had.
  explicit WorkerPool(size_t most = kDefaultMost, std::chrono::milliseconds idle_time = std::chrono::seconds(10));
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
    int64_t at_ns_ = INT64_MAX;  // by timer_mutex_ of the pool
    bool rings_ = false;         // by timer_mutex_
    bool is_stopped_ = false;    // by timer_mutex_
  };

 private:
  static constexpr size_t kDefaultMost = 256;

  struct Worker {
    std::condition_variable changed;
    std::function<void()> task;
    bool is_over = false;
    Thread thread;
  };

  void add_worker();
  void work(Worker& me);
  bool wait_for_task(Worker& me, std::unique_lock<std::mutex>& lock);
  void set_alarm(Alarm& alarm, int64_t delay_ns);
  void stop_alarm(Alarm& alarm);
  void keep_time();

  const size_t most_;
  const size_t kept_;  // threads that stay when they are idle
  const std::chrono::milliseconds idle_time_;
  mutable std::mutex mutex_;
  std::list<Worker> workers_;                // by mutex_
  std::vector<Worker*> idle_;                // by mutex_; the one that was busy last at the end
  std::deque<std::function<void()>> tasks_;  // by mutex_
  std::atomic<size_t> waiting_{0};           // size of tasks_
  bool is_stopped_ = false;                  // by mutex_

  std::mutex timer_mutex_;
  std::condition_variable timer_changed_, alarm_done_;
  std::multimap<int64_t, Alarm*> alarms_;  // by timer_mutex_
  bool is_timer_stopped_ = false;          // by timer_mutex_
  Thread timer_;                           // by timer_mutex_ until stopped; made by the first alarm
};

}  // namespace tensord::server
