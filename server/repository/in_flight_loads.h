#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <string>

#include "core/base/cancellation.h"
#include "core/base/mutex.h"

namespace tensord::server {

// The loads that run or are queued, so that they can be cancelled: code that a model runs while it loads (constants,
// `__setstate__`, the warm-up) may never end. Thread-safe.
class InFlightLoads {
 public:
  // Timeout of loads that start from now on; 0: none.
  explicit InFlightLoads(int64_t timeout_ns) : timeout_ns_(timeout_ns) {}

  // A load on the calling thread. While this object lives, check_work_cancelled() reports the load's timeout and
  // cancellation.
  class Load {
   public:
    Load(InFlightLoads& in_flight_loads, const std::string& name);
    ~Load();
    Load(const Load&) = delete;
    Load& operator=(const Load&) = delete;

   private:
    friend class InFlightLoads;
    bool is_cancelled() const;

    InFlightLoads& in_flight_loads_;
    const std::string name_;
    const int64_t began_ns_;
    std::atomic<bool> is_cancelled_{false};
    std::list<Load*>::iterator place_;
    const CancellationScope scope_;
  };

  // Cancels the current loads of a model that have run for more than two seconds.
  void cancel(const std::string& name);
  // Cancels all loads, future ones included.
  void cancel_all();

 private:
  const int64_t timeout_ns_;
  Mutex mutex_;
  std::list<Load*> in_flight_loads_ TENSORD_GUARDED_BY(mutex_);
  std::atomic<bool> is_closed_{false};
};

}  // namespace tensord::server
