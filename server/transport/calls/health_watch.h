#pragma once

#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "core/base/mutex.h"
#include "core/base/thread.h"
#include "protos/health.grpc.pb.h"

namespace tensord::server {

// Is notified when the status of a service changes.
class HealthWatcher {
 public:
  virtual void set_status(grpc::health::v1::HealthCheckResponse::ServingStatus status) = 0;
  // The server shuts down: NOT_SERVING is the last status.
  virtual void close() = 0;

 protected:
  ~HealthWatcher() = default;
};

// Checks each watched service every 0.2 s, whatever the number of watchers, on a thread of its own, which sleeps while
// there are none. Thread-safe.
class HealthWatch {
 public:
  using Status = grpc::health::v1::HealthCheckResponse::ServingStatus;
  // A watcher needs about 20 KB.
  static constexpr size_t kMaxWatchers = 4000;

  explicit HealthWatch(std::function<Status(const std::string& service)> status_of);
  ~HealthWatch();

  // Reports the current status at once, and each change until remove(). Throws Error{kResourceExhausted} if there are
  // too many watchers, kUnavailable after close(), kInvalidArgument for a name that no model can have.
  void add(const std::string& service, HealthWatcher& watcher);
  // Does nothing if it was not added.
  void remove(HealthWatcher& watcher);
  // Closes all watchers.
  void close();

 private:
  struct Service {
    Status status;
    std::unordered_set<HealthWatcher*> watchers;
  };
  void watch();
  void stop();

  const std::function<Status(const std::string& service)> status_of_;
  Mutex mutex_;  // locked before a watcher's mutex
  CondVar changed_;
  std::map<std::string, Service> services_ TENSORD_GUARDED_BY(mutex_);
  std::unordered_map<HealthWatcher*, std::string> watchers_ TENSORD_GUARDED_BY(mutex_);
  bool is_stopped_ TENSORD_GUARDED_BY(mutex_) = false, is_closed_ TENSORD_GUARDED_BY(mutex_) = false;
  Thread thread_;
};

}  // namespace tensord::server
