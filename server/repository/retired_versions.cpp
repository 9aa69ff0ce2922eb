#include "server/repository/retired_versions.h"

#include <chrono>

#include "core/base/log.h"

namespace tensord::server {
namespace {

// How often it looks for requests that have ended.
constexpr auto kLookInterval = std::chrono::milliseconds(10);

}  // namespace

RetiredVersions::~RetiredVersions() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void RetiredVersions::add(std::shared_ptr<ModelVersion> version) {
  {
    const std::lock_guard lock(mutex_);
    versions_.push_back(std::move(version));
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  }
  changed_.notify_all();
}

size_t RetiredVersions::size() const {
  const std::lock_guard lock(mutex_);
  return versions_.size();
}

void RetiredVersions::work() {
  std::unique_lock lock(mutex_);
  while (!is_stopped_) {
    std::vector<std::shared_ptr<ModelVersion>> free;
    for (size_t i = versions_.size(); i-- > 0;) {
      // Nobody can take a new reference: it is in no list any more.
      if (versions_[i].use_count() > 1) continue;
      free.push_back(std::move(versions_[i]));
      versions_.erase(versions_.begin() + static_cast<ptrdiff_t>(i));
    }
    if (!free.empty()) {
      lock.unlock();
      for (auto& version : free) {
        log(LogLevel::kInfo, "model unloaded", {{"model", version->name()}, {"version", version->version()}});
        version.reset();
      }
      lock.lock();
    } else if (versions_.empty()) {
      changed_.wait(lock);
    } else {
      changed_.wait_for(lock, kLookInterval);
    }
  }
}

}  // namespace tensord::server
