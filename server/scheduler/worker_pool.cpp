#include "server/scheduler/worker_pool.h"

#include <algorithm>
#include <chrono>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/parallel.h"

namespace tensord::server {

WorkerPool::WorkerPool(size_t max, std::chrono::milliseconds idle_time)
    : max_(std::max<size_t>(max, 1)), kept_(static_cast<size_t>(available_cores())), idle_time_(idle_time) {
  start();
}

WorkerPool::~WorkerPool() {
  stop_timer();
  timer_changed_.notify_all();
  if (timer_.joinable()) timer_.join();
  stop_workers();
  for (Worker& worker : workers_) worker.thread.join();
}

// A function of its own, because Clang's thread-safety analysis skips constructors and destructors.
void WorkerPool::start() {
  const MutexLock lock(mutex_);
  add_worker();
}

void WorkerPool::stop_timer() {
  const MutexLock lock(timer_mutex_);
  is_timer_stopped_ = true;
}

void WorkerPool::stop_workers() {
  const MutexLock lock(mutex_);
  is_stopped_ = true;
  for (Worker* worker : idle_) worker->changed.notify_one();
}

size_t WorkerPool::threads() const {
  const MutexLock lock(mutex_);
  return static_cast<size_t>(
      std::count_if(workers_.begin(), workers_.end(), [](const Worker& one) { return !one.is_over; }));
}

void WorkerPool::post(std::function<void()> fn) {
  const MutexLock lock(mutex_);
  if (!idle_.empty()) {
    Worker* const worker = idle_.back();
    idle_.pop_back();
    worker->task = std::move(fn);
    worker->changed.notify_one();
    return;
  }
  tasks_.push_back(std::move(fn));
  waiting_.store(tasks_.size(), std::memory_order_relaxed);
  try {
    add_worker();
  } catch (const Error& error) {
    log(LogLevel::kWarning, "requests wait for threads", {{"threads", workers_.size()}, {"reason", error.what()}});
  }
}

void WorkerPool::add_worker() {
  for (auto at = workers_.begin(); at != workers_.end();) {
    if (at->is_over) at->thread.join();  // it holds no lock anymore
    at = at->is_over ? workers_.erase(at) : std::next(at);
  }
  if (workers_.size() >= max_) return;
  Worker& worker = workers_.emplace_back();
  try {
    worker.thread = Thread("worker", [this, &worker] { work(worker); });
  } catch (...) {
    workers_.pop_back();
    throw;
  }
}

// Returns false if the thread should end.
bool WorkerPool::wait_for_task(Worker& me, MutexLock& lock) {
  if (!tasks_.empty()) {
    me.task = std::move(tasks_.front());
    tasks_.pop_front();
    waiting_.store(tasks_.size(), std::memory_order_relaxed);
    return true;
  }
  if (is_stopped_) return false;
  idle_.push_back(&me);
  while (!me.task && !is_stopped_) {
    const bool is_late = !me.changed.wait_for(lock, idle_time_);
    if (me.task || !is_late || idle_.size() <= kept_) continue;
    std::erase(idle_, &me);
    return false;
  }
  return bool{me.task};
}

void WorkerPool::work(Worker& me) {
  MutexLock lock(mutex_);
  while (wait_for_task(me, lock)) {
    const std::function<void()> task = std::exchange(me.task, nullptr);
    lock.unlock();
    run_logged("worker", task);
    lock.lock();
  }
  me.is_over = true;
}

void WorkerPool::set_alarm(Alarm& alarm, int64_t delay_ns) {
  const int64_t at_ns = delay_ns == INT64_MAX ? INT64_MAX : Clock::system().now_ns() + std::max<int64_t>(delay_ns, 0);
  const MutexLock lock(timer_mutex_);
  if (alarm.is_stopped_ || alarm.at_ns_ == at_ns) return;
  const auto [first, last] = alarms_.equal_range(alarm.at_ns_);
  const auto known = std::find_if(first, last, [&](const auto& entry) { return entry.second == &alarm; });
  if (known != last) alarms_.erase(known);
  alarm.at_ns_ = at_ns;
  if (at_ns == INT64_MAX) return;
  const auto added = alarms_.emplace(at_ns, &alarm);
  if (!timer_.joinable()) {
    run_logged("timer", [&] { timer_ = Thread("timer", [this] { keep_time(); }); });  // the next alarm tries again
  } else if (added == alarms_.begin()) {
    timer_changed_.notify_one();
  }
}

void WorkerPool::stop_alarm(Alarm& alarm) {
  set_alarm(alarm, INT64_MAX);
  MutexLock lock(timer_mutex_);
  alarm.is_stopped_ = true;
  alarm_done_.wait(lock, [&] { return !alarm.rings_; });
}

void WorkerPool::keep_time() {
  MutexLock lock(timer_mutex_);
  while (!is_timer_stopped_) {
    if (alarms_.empty()) {
      timer_changed_.wait(lock);
      continue;
    }
    const auto next = alarms_.begin();
    const int64_t left_ns = next->first - Clock::system().now_ns();
    if (left_ns > 0) {
      timer_changed_.wait_for(lock, std::chrono::nanoseconds(left_ns));
      continue;
    }
    Alarm& alarm = *next->second;
    alarms_.erase(next);
    alarm.at_ns_ = INT64_MAX;
    alarm.rings_ = true;
    lock.unlock();
    run_logged("timer", alarm.fn_);
    lock.lock();
    alarm.rings_ = false;
    alarm_done_.notify_all();
  }
}

}  // namespace tensord::server
