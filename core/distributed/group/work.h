#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/distributed/store/store.h"
#include "core/tensor/device_runtime.h"

namespace tensord::distributed {

using SteadyTime = std::chrono::steady_clock::time_point;

// A started operation of a group: it runs, or is queued, and ends with a result or an error. Before its end its tensors
// must not be written, and its results must not be read. Thread-safe. The object may be dropped at any time; the
// operation continues.
class Work {
 public:
  // `name` is used in messages: "all_reduce number 7, float32[2, 3], sum".
  Work(uint64_t number, std::string name) : number_(number), name_(std::move(name)) {}
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // Returns when the operation has ended, or throws its Error. On a device: returns when the operation is enqueued;
  // what the calling thread adds to its current stream afterwards runs after it. If it fails later, its results are
  // invalid and the group's next operation throws. To get such an error now, wait with a timeout.
  void wait();
  // As wait(), with a timeout; returns false if it expired.
  bool wait_for(Milliseconds timeout);
  // Returns when the operation has ended, on a device too. Throws Error{kDeadlineExceeded} on timeout; the operation
  // continues, and a later wait reports its end.
  void wait(Milliseconds timeout);
  bool is_done() const;
  // The error, if the operation has failed.
  std::optional<Error> error() const;
  // Calls `callback` once with this work, on the thread that ends it, or at once if it has ended. Callbacks registered
  // before the end have returned when a wait returns. A callback must not wait for this work.
  void on_done(std::function<void(const Work&)> callback);

  uint64_t number() const { return number_; }  // within its group; 0 for send and recv
  const std::string& name() const { return name_; }
  // Of a finished recv: the rank of the sender.
  int source_rank() const;
  // How long it was queued, and how long it ran.
  std::chrono::nanoseconds queued() const, ran() const;

  // For the code that runs it.
  void start();
  void finish(std::optional<Error> error = std::nullopt, int source_rank = -1);
  // Everything is enqueued on the device; `end` is recorded after it.
  void launched(std::unique_ptr<DeviceEvent> end, Device device);
  // Whether the device has reached `end`.
  bool has_passed() const;

 private:
  void order_stream() const TENSORD_REQUIRES(mutex_);

  const uint64_t number_;
  const std::string name_;
  mutable Mutex mutex_;
  CondVar done_;
  const SteadyTime made_ = std::chrono::steady_clock::now();
  SteadyTime started_ TENSORD_GUARDED_BY(mutex_) = made_, ended_ TENSORD_GUARDED_BY(mutex_) = made_;
  bool is_ending_ TENSORD_GUARDED_BY(mutex_) = false;  // the result is available, callbacks run
  bool is_done_ TENSORD_GUARDED_BY(mutex_) = false;
  std::unique_ptr<DeviceEvent> end_ TENSORD_GUARDED_BY(mutex_);  // null until launched
  Device device_;
  int source_rank_ TENSORD_GUARDED_BY(mutex_) = -1;
  std::optional<Error> error_ TENSORD_GUARDED_BY(mutex_);
  std::vector<std::function<void(const Work&)>> callbacks_ TENSORD_GUARDED_BY(mutex_);
};

using WorkPtr = std::shared_ptr<Work>;

// Counts waits for works of this process. A wait that continues since the last look means that the waiting thread has
// done nothing else meanwhile. Thread-safe.
struct Waits {
  uint64_t ended = 0;
  bool is_waiting = false;  // at this moment
};
Waits waits_of_process();

}  // namespace tensord::distributed
