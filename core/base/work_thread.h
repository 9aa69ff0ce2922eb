#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "core/base/error.h"
#include "core/base/thread.h"

namespace tensord {

// Threads for calls that take too long for those that answer requests: they load models and write to the disk. They are
// made when all that are there are busy, up to `most`; with one the pieces of work run one after the other. All of them
// are done before it goes. Thread-safe.
class WorkThread {
 public:
  explicit WorkThread(size_t most = 1) : most_(most) { add_thread(); }
  ~WorkThread() {
    {
      const std::lock_guard lock(mutex_);
      is_stopped_ = true;
    }
    changed_.notify_all();
    for (Thread& thread : threads_) thread.join();
  }
  WorkThread(const WorkThread&) = delete;
  WorkThread& operator=(const WorkThread&) = delete;

  void post(std::function<void()> fn) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(fn));
      if (idle_ < tasks_.size() && threads_.size() < most_) try_add_thread();
    }
    changed_.notify_one();
  }

 private:
  void add_thread() {
    threads_.emplace_back("slow-calls", [this] { work(); });
  }

  void try_add_thread() {
    try {
      add_thread();
    } catch (const Error&) {
      // No thread to be had: those that are there take one task after the other.
    }
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      changed_.wait(lock, [this] { return is_stopped_ || !tasks_.empty(); });
      --idle_;
      if (tasks_.empty()) return;
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      run_logged("slow-calls", task);
      lock.lock();
    }
  }

  const size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;  // by mutex_
  size_t idle_ = 0;                          // by mutex_: threads that wait
  bool is_stopped_ = false;                  // by mutex_
  std::vector<Thread> threads_;              // by mutex_ until stopped; last: they use the rest
};

}  // namespace tensord
