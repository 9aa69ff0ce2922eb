#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/base/thread.h"

namespace tensord {

// Threads for slow calls (loading models, writing to the disk), so that threads that answer requests do not block. A
// new thread starts when all existing ones are busy, up to `max` threads; with one thread the tasks run one after the
// other. The destructor finishes all tasks. Thread-safe.
class WorkThread {
 public:
  explicit WorkThread(size_t max = 1) : max_(max) {
    const MutexLock lock(mutex_);
    add_thread();
  }
  ~WorkThread() {
    {
      const MutexLock lock(mutex_);
      is_stopped_ = true;
    }
    changed_.notify_all();
    join_all();
  }
  WorkThread(const WorkThread&) = delete;
  WorkThread& operator=(const WorkThread&) = delete;

  void post(std::function<void()> fn) {
    {
      const MutexLock lock(mutex_);
      tasks_.push_back(std::move(fn));
      if (idle_ < tasks_.size() && threads_.size() < max_) try_add_thread();
    }
    changed_.notify_one();
  }

 private:
  void add_thread() TENSORD_REQUIRES(mutex_) {
    threads_.emplace_back("slow-calls", [this] { work(); });
  }

  void try_add_thread() TENSORD_REQUIRES(mutex_) {
    try {
      add_thread();
    } catch (const Error&) {
      // No thread could be started. The existing ones run the tasks one after the other.
    }
  }

  // After the stop nobody adds a thread. The threads need the lock to end.
  void join_all() TENSORD_NO_THREAD_SAFETY_ANALYSIS {
    for (Thread& thread : threads_) thread.join();
  }

  void work() {
    MutexLock lock(mutex_);
    for (;;) {
      ++idle_;
      changed_.wait(lock, [this]() TENSORD_REQUIRES(mutex_) { return is_stopped_ || !tasks_.empty(); });
      --idle_;
      if (tasks_.empty()) return;
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      run_logged("slow-calls", task);
      lock.lock();
    }
  }

  const size_t max_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> tasks_ TENSORD_GUARDED_BY(mutex_);
  size_t idle_ TENSORD_GUARDED_BY(mutex_) = 0;  // waiting threads
  bool is_stopped_ TENSORD_GUARDED_BY(mutex_) = false;
  std::vector<Thread> threads_ TENSORD_GUARDED_BY(mutex_);  // last member, because the threads use the others
};

}  // namespace tensord
