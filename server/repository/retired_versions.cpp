#include "server/repository/retired_versions.h"

#include <chrono>

#include "core/base/delay_point.h"
#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/thread.h"

namespace tensord::server {
namespace {

// Polling interval for requests that still hold a version.
constexpr auto kRetiredLookInterval = std::chrono::milliseconds(5);

}  // namespace

RetiredVersions::~RetiredVersions() {
  {
    const MutexLock lock(mutex_);
    is_stopped_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::shared_future<void> RetiredVersions::add(std::shared_ptr<ModelVersion> version, std::function<void()> on_gone) {
  Retired retired{std::move(version), std::move(on_gone), {}};
  std::shared_future<void> gone = retired.gone.get_future().share();
  {
    const MutexLock lock(mutex_);
    versions_.push_back(std::move(retired));
    if (!thread_.joinable()) thread_ = Thread("retired", [this] { work(); });
  }
  changed_.notify_all();
  return gone;
}

void RetiredVersions::end(Retired retired) {
  TENSORD_DELAY("repository.end");
  log(LogLevel::kInfo, "model version ended",
      {{"model", retired.version->name()}, {"version", retired.version->version()}});
  retired.version.reset();
  if (retired.on_gone) retired.on_gone();
  retired.gone.set_value();
}

void RetiredVersions::work() {
  MutexLock lock(mutex_);
  while (!is_stopped_) {
    std::vector<Retired> free;
    for (size_t i = versions_.size(); i-- > 0;) {
      // The count cannot grow anymore: no list contains the version.
      if (versions_[i].version.use_count() > 1) continue;
      free.push_back(std::move(versions_[i]));
      versions_.erase(versions_.begin() + static_cast<ptrdiff_t>(i));
    }
    if (!free.empty()) {
      lock.unlock();
      for (Retired& retired : free) run_logged("retired", [&] { end(std::move(retired)); });
      lock.lock();
    } else if (versions_.empty()) {
      changed_.wait(lock);
    } else {
      changed_.wait_for(lock, kRetiredLookInterval);
    }
  }
}

}  // namespace tensord::server
