#include "core/distributed/group/work.h"

#include <atomic>

#include "core/base/cancellable_wait.h"
#include "core/base/mutex.h"

namespace tensord::distributed {
namespace {

std::atomic<uint64_t> begun_waits{0}, ended_waits{0};

struct WaitScope {
  WaitScope() { ++begun_waits; }
  ~WaitScope() { ++ended_waits; }
};

}  // namespace

Waits waits_of_process() {
  const uint64_t ended = ended_waits;
  return {ended, begun_waits != ended};
}

void Work::wait() {
  const WaitScope scope;
  MutexLock lock(mutex_);
  cancellable_wait(done_, lock, std::chrono::steady_clock::time_point::max(),
                   [this]() TENSORD_REQUIRES(mutex_) { return is_done_ || end_; });
  order_stream();
}

bool Work::wait_for(Milliseconds timeout) {
  const WaitScope scope;
  MutexLock lock(mutex_);
  if (!done_.wait_for(lock, timeout, [this]() TENSORD_REQUIRES(mutex_) { return is_done_ || end_; })) return false;
  order_stream();
  return true;
}

void Work::order_stream() const {
  if (error_) throw *error_;
  if (end_) end_->hold(current_stream(device_));
}

void Work::launched(std::unique_ptr<DeviceEvent> end, Device device) {
  {
    const MutexLock lock(mutex_);
    end_ = std::move(end);
    device_ = device;
  }
  done_.notify_all();
}

bool Work::has_passed() const {
  const MutexLock lock(mutex_);
  return end_ && end_->is_done();
}

void Work::wait(Milliseconds timeout) {
  const WaitScope scope;
  MutexLock lock(mutex_);
  if (!done_.wait_for(lock, timeout, [this]() TENSORD_REQUIRES(mutex_) { return is_done_; })) {
    fail(ErrorCode::kDeadlineExceeded, name_, ": Operation timed out! It has not ended after ", timeout.count(),
         " ms, and continues");
  }
  order_stream();
}

bool Work::is_done() const {
  const MutexLock lock(mutex_);
  return is_done_;
}

std::optional<Error> Work::error() const {
  const MutexLock lock(mutex_);
  return error_;
}

void Work::on_done(std::function<void(const Work&)> callback) {
  {
    const MutexLock lock(mutex_);
    if (!is_done_) {
      callbacks_.push_back(std::move(callback));
      return;
    }
  }
  callback(*this);
}

int Work::source_rank() const {
  const MutexLock lock(mutex_);
  return source_rank_;
}

std::chrono::nanoseconds Work::queued() const {
  const MutexLock lock(mutex_);
  return started_ - made_;
}

std::chrono::nanoseconds Work::ran() const {
  const MutexLock lock(mutex_);
  return ended_ - started_;
}

void Work::start() {
  const MutexLock lock(mutex_);
  started_ = std::chrono::steady_clock::now();
}

void Work::finish(std::optional<Error> error, int source_rank) {
  MutexLock lock(mutex_);
  if (is_ending_) return;
  is_ending_ = true;
  ended_ = std::chrono::steady_clock::now();
  error_ = std::move(error);
  source_rank_ = source_rank;
  while (!callbacks_.empty()) {
    std::vector<std::function<void(const Work&)>> callbacks;
    callbacks.swap(callbacks_);
    lock.unlock();
    for (const auto& callback : callbacks) callback(*this);
    lock.lock();
  }
  is_done_ = true;
  lock.unlock();
  done_.notify_all();
}

}  // namespace tensord::distributed
