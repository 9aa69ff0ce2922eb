#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/base/mutex.h"

namespace tensord::server {

// One lock per name, which exists while somebody holds or waits for it. Uses the standard library's mutex, because a
// held lock is moved. Thread-safe.
class NameLocks {
 public:
  class Held {
   public:
    explicit Held(std::shared_ptr<std::mutex> mutex) : mutex_(std::move(mutex)), lock_(*mutex_) {}

   private:
    std::shared_ptr<std::mutex> mutex_;
    std::unique_lock<std::mutex> lock_;  // destroyed before mutex_ is unlocked
  };

  // Waits until nobody else holds the name.
  [[nodiscard]] Held hold(const std::string& name) {
    std::shared_ptr<std::mutex> mutex;
    {
      const MutexLock lock(mutex_);
      std::erase_if(by_name_, [](const auto& entry) { return entry.second.expired(); });
      std::weak_ptr<std::mutex>& slot = by_name_[name];
      mutex = slot.lock();
      if (!mutex) slot = mutex = std::make_shared<std::mutex>();
    }
    return Held(std::move(mutex));
  }

 private:
  Mutex mutex_;
  std::map<std::string, std::weak_ptr<std::mutex>> by_name_ TENSORD_GUARDED_BY(mutex_);
};

}  // namespace tensord::server
