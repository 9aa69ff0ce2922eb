#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/thread.h"

namespace tensord::server {

// Loads models that requests wait for. Requests for the same model share one load. Thread-safe.
class DemandLoads {
 public:
  // `load` must not throw.
  DemandLoads(int threads, size_t max_waiting, std::function<void(const std::string& name)> load);
  ~DemandLoads();
  DemandLoads(const DemandLoads&) = delete;
  DemandLoads& operator=(const DemandLoads&) = delete;

  // Starts no more loads, and returns when the running ones have ended and all waiting functions were called.
  void stop();

  // Loads the model, unless a load is under way, and then calls `then` on a thread of this object; it must not throw.
  // False if too many requests wait for the model, or after stop().
  bool add(const std::string& name, std::function<void()> then);

 private:
  void work();

  const size_t max_waiting_;
  const std::function<void(const std::string& name)> load_;
  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, std::vector<std::function<void()>>> waiting_ TENSORD_GUARDED_BY(mutex_);
  std::deque<std::string> names_ TENSORD_GUARDED_BY(mutex_);  // not started
  bool is_stopped_ TENSORD_GUARDED_BY(mutex_) = false;
  std::vector<Thread> threads_;
};

}  // namespace tensord::server
