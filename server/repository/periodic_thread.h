#pragma once

#include <chrono>
#include <functional>

#include "core/base/mutex.h"
#include "core/base/thread.h"

namespace tensord::server {

// Calls a function repeatedly, with a pause after each call, until it is destroyed.
class PeriodicThread {
 public:
  PeriodicThread(std::chrono::milliseconds pause, std::function<void()> fn)
      : pause_(pause), fn_(std::move(fn)), thread_("periodic", [this] { work(); }) {}
  ~PeriodicThread() {
    {
      const MutexLock lock(mutex_);
      is_stopped_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  PeriodicThread(const PeriodicThread&) = delete;
  PeriodicThread& operator=(const PeriodicThread&) = delete;

 private:
  void work() {
    MutexLock lock(mutex_);
    while (!changed_.wait_for(lock, pause_, [this]() TENSORD_REQUIRES(mutex_) { return is_stopped_; })) {
      lock.unlock();
      run_logged("periodic", fn_);
      lock.lock();
    }
  }

  const std::chrono::milliseconds pause_;
  const std::function<void()> fn_;
  Mutex mutex_;
  CondVar changed_;
  bool is_stopped_ TENSORD_GUARDED_BY(mutex_) = false;
  Thread thread_;  // last: it uses the other members
};

}  // namespace tensord::server
