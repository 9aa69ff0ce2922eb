#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "core/base/mutex.h"

namespace tensord::server {

// Delivers answers in the order of their turns (0, 1, 2 …, each once), in whatever order they become ready.
// Thread-safe.
class ReorderBuffer {
 public:
  // Calls `answer` once all earlier turns were delivered: now, or later on the thread that delivers the missing turn.
  void deliver(uint64_t turn, std::function<void()> answer) {
    MutexLock lock(mutex_);
    ready_.emplace(turn, std::move(answer));
    if (is_delivering_) return;
    is_delivering_ = true;
    while (!ready_.empty() && ready_.begin()->first == next_) {
      const std::function<void()> first = std::move(ready_.begin()->second);
      ready_.erase(ready_.begin());
      ++next_;
      lock.unlock();
      first();
      lock.lock();
    }
    is_delivering_ = false;
  }

 private:
  Mutex mutex_;
  uint64_t next_ TENSORD_GUARDED_BY(mutex_) = 0;
  bool is_delivering_ TENSORD_GUARDED_BY(mutex_) = false;  // a thread runs the loop
  std::map<uint64_t, std::function<void()>> ready_ TENSORD_GUARDED_BY(mutex_);
};

}  // namespace tensord::server
