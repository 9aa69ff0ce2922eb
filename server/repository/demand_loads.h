#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/thread.h"

namespace tensord::server {

// Loads of models that requests wait for: one for all that wait for the same model. Thread-safe.
class DemandLoads {
 public:
  // `load` must not throw.
  DemandLoads(int threads, size_t max_waiting, std::function<void(const std::string& name)> load);
  ~DemandLoads();
  DemandLoads(const DemandLoads&) = delete;
  DemandLoads& operator=(const DemandLoads&) = delete;

  // No more is loaded; returns when what is under way has ended, and all that wait were called.
  void stop();

  // Loads the model, unless that is under way, and calls `then` afterwards on a thread of this; it must not throw.
  // False when too many wait for the model, or no more is loaded.
  bool add(const std::string& name, std::function<void()> then);

 private:
  void work();

  const size_t max_waiting_;
  const std::function<void(const std::string& name)> load_;
  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, std::vector<std::function<void()>>> waiting_ TENSORD_GUARDED_BY(mutex_);
  std::deque<std::string> names_ TENSORD_GUARDED_BY(mutex_);  // not begun yet
  bool is_stopped_ TENSORD_GUARDED_BY(mutex_) = false;
  std::vector<Thread> threads_;
};

}  // namespace tensord::server
