#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "core/base/mutex.h"

namespace tensord::server {

// Lets answers out in the order of their turns (0, 1, 2 …, each once), whoever is ready first. Thread-safe.
class ReorderBuffer {
 public:
  // Calls `answer` when all turns before have been called: now, or later on the thread that brings the missing one.
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
  bool is_delivering_ TENSORD_GUARDED_BY(mutex_) = false;  // a thread is in the loop
  std::map<uint64_t, std::function<void()>> ready_ TENSORD_GUARDED_BY(mutex_);
};

}  // namespace tensord::server
