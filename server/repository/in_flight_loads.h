#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <string>

#include "core/base/cancellation.h"
#include "core/base/mutex.h"

namespace tensord::server {

// Loads that are under way or wait for their turn, so that they can be given up: what a model file does at load time
// (constants,
// `__setstate__`, the warm-up) may never end. Thread-safe.
class InFlightLoads {
 public:
  // Of loads from now on; 0: none.
  explicit InFlightLoads(int64_t timeout_ns) : timeout_ns_(timeout_ns) {}

  // The calling thread loads a model: what it does from here to the end of the load looks with
  // check_work_cancelled().
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

  // Gives up the loads of a model that there are now, but for those that end within two seconds of their beginning.
  void cancel(const std::string& name);
  // Gives up all loads, those to come among them.
  void cancel_all();

 private:
  const int64_t timeout_ns_;
  Mutex mutex_;
  std::list<Load*> in_flight_loads_ TENSORD_GUARDED_BY(mutex_);
  std::atomic<bool> is_closed_{false};
};

}  // namespace tensord::server
