#include "server/transport/calls/health_watch.h"

#include <chrono>
#include <utility>

#include "core/base/error.h"
#include "core/base/mutex.h"

namespace tensord::server {
namespace {

// Maximum delay with which a watcher sees a change.
constexpr auto kInterval = std::chrono::milliseconds(200);
// Maximum length of a watched service's name, which is stored for the whole watch and needs no token.
constexpr size_t kMaxServiceBytes = 1024;

}  // namespace

HealthWatch::HealthWatch(std::function<Status(const std::string& service)> status_of)
    : status_of_(std::move(status_of)), thread_("health-watch", [this] { watch(); }) {}

HealthWatch::~HealthWatch() {
  stop();
  changed_.notify_all();
  thread_.join();
}

// Not in the destructor, which Clang's thread-safety analysis skips.
void HealthWatch::stop() {
  const MutexLock lock(mutex_);
  is_stopped_ = true;
}

void HealthWatch::add(const std::string& service, HealthWatcher& watcher) {
  check(service.size() <= kMaxServiceBytes, "the name of a service has ", service.size(), " bytes, at most ",
        kMaxServiceBytes);
  const MutexLock lock(mutex_);
  if (is_closed_) fail(ErrorCode::kUnavailable, "the server is shutting down");
  if (watchers_.size() >= kMaxWatchers) {
    fail(ErrorCode::kResourceExhausted, "the server has ", kMaxWatchers, " watches of health and takes no more");
  }
  auto found = services_.find(service);
  if (found == services_.end()) found = services_.emplace(service, Service{status_of_(service), {}}).first;
  found->second.watchers.insert(&watcher);
  watchers_.emplace(&watcher, service);
  watcher.set_status(found->second.status);
  if (watchers_.size() == 1) changed_.notify_all();
}

void HealthWatch::remove(HealthWatcher& watcher) {
  const MutexLock lock(mutex_);
  const auto found = watchers_.find(&watcher);
  if (found == watchers_.end()) return;
  const auto service = services_.find(found->second);
  service->second.watchers.erase(&watcher);
  if (service->second.watchers.empty()) services_.erase(service);
  watchers_.erase(found);
}

void HealthWatch::close() {
  const MutexLock lock(mutex_);
  is_closed_ = true;
  for (const auto& [watcher, service] : watchers_) watcher->close();
}

void HealthWatch::watch() {
  MutexLock lock(mutex_);
  while (!is_stopped_) {
    if (watchers_.empty()) {
      changed_.wait(lock, [this]() TENSORD_REQUIRES(mutex_) { return is_stopped_ || !watchers_.empty(); });
      continue;
    }
    if (changed_.wait_for(lock, kInterval, [this]() TENSORD_REQUIRES(mutex_) { return is_stopped_; })) return;
    if (is_closed_) return;
    for (auto& [name, service] : services_) {
      const Status status = status_of_(name);
      if (std::exchange(service.status, status) == status) continue;
      for (HealthWatcher* watcher : service.watchers) watcher->set_status(status);
    }
  }
}

}  // namespace tensord::server
