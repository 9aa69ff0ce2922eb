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

// An operation of a group that was started: it runs, or waits for those before it, and ends with a result or an error.
// Its tensors must not be written, and results not be read, before it has ended. Thread-safety: all of it; it may be
// dropped at any time and the operation goes on.
class Work {
 public:
  // `name`: "all_reduce number 7, float32[2, 3], sum", for messages.
  Work(uint64_t number, std::string name) : number_(number), name_(std::move(name)) {}
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // Returns when the operation has ended; throws its Error. On a device: when it is queued, and what the calling thread
  // gives its current stream from now on comes after it. Should it fail later, its results are nothing, and the group's
  // next operation throws: who must know that now waits with a time.
  void wait();
  // The same, but gives up after a time and says so by false.
  bool wait_for(Milliseconds timeout);
  // Returns when it has ended, on a device too. Throws Error{kDeadlineExceeded} when the time is over; the operation
  // goes on, and a later wait tells its end.
  void wait(Milliseconds timeout);
  bool is_done() const;
  // Of an operation that has ended badly.
  std::optional<Error> error() const;
  // Called once with this work when it has ended, at once if it has, on the thread that ends it. Those that were given
  // before the end have returned when a wait does; they must not wait for this work.
  void on_done(std::function<void(const Work&)> callback);

  uint64_t number() const { return number_; }  // within its group; 0 for send and recv
  const std::string& name() const { return name_; }
  // Of a recv that is done: the rank that sent.
  int source_rank() const;
  // How long it waited for those before it, and how long it ran.
  std::chrono::nanoseconds queued() const, ran() const;

  // For those who run it.
  void start();
  void finish(std::optional<Error> error = std::nullopt, int source_rank = -1);
  // All of it is queued on the device; `end` is the point behind it.
  void launched(std::unique_ptr<DeviceEvent> end, Device device);
  // Whether the device has passed that point.
  bool has_passed() const;

 private:
  void order_stream() const TENSORD_REQUIRES(mutex_);

  const uint64_t number_;
  const std::string name_;
  mutable Mutex mutex_;
  CondVar done_;
  const SteadyTime made_ = std::chrono::steady_clock::now();
  SteadyTime started_ TENSORD_GUARDED_BY(mutex_) = made_, ended_ TENSORD_GUARDED_BY(mutex_) = made_;
  bool is_ending_ TENSORD_GUARDED_BY(mutex_) = false;  // the result is there, callbacks run
  bool is_done_ TENSORD_GUARDED_BY(mutex_) = false;
  std::unique_ptr<DeviceEvent> end_ TENSORD_GUARDED_BY(mutex_);  // null until it is launched
  Device device_;
  int source_rank_ TENSORD_GUARDED_BY(mutex_) = -1;
  std::optional<Error> error_ TENSORD_GUARDED_BY(mutex_);
  std::vector<std::function<void(const Work&)>> callbacks_ TENSORD_GUARDED_BY(mutex_);
};

using WorkPtr = std::shared_ptr<Work>;

// The waits for works of this process: one that has gone on since it was last looked at means that nothing was done
// meanwhile on the thread that waits. Thread-safe.
struct Waits {
  uint64_t ended = 0;
  bool is_waiting = false;  // now
};
Waits waits_of_process();

}  // namespace tensord::distributed
