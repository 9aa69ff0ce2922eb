#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tensord {

// Threads for calls that take too long for those that answer requests: they load models and write to the disk. With
// one thread the pieces of work run one after the other; all of them are done before it goes. Thread-safe.
class WorkThread {
 public:
  explicit WorkThread(int threads = 1) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~WorkThread() {
    {
      const std::lock_guard lock(mutex_);
      is_stopped_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  WorkThread(const WorkThread&) = delete;
  WorkThread& operator=(const WorkThread&) = delete;

  // `fn` must not throw.
  void post(std::function<void()> fn) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(fn));
    }
    changed_.notify_one();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return is_stopped_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;  // by mutex_
  bool is_stopped_ = false;                  // by mutex_
  std::vector<std::thread> threads_;         // last: they use the rest
};

}  // namespace tensord
