#pragma once

#include <functional>
#include <future>
#include <memory>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/thread.h"
#include "server/executor/model/model_version.h"

namespace tensord::server {

// Versions that are no longer served. Each is destroyed on a thread of this object once the last request has released
// it, so that no request pays for that. Thread-safe.
class RetiredVersions {
 public:
  RetiredVersions() = default;
  ~RetiredVersions();

  // The future is ready when the version is destroyed. `on_gone` is called before that, on a thread of this object.
  std::shared_future<void> add(std::shared_ptr<ModelVersion> version, std::function<void()> on_gone = {});

 private:
  struct Retired {
    std::shared_ptr<ModelVersion> version;
    std::function<void()> on_gone;
    std::promise<void> gone;
  };
  void work();
  static void end(Retired retired);

  Mutex mutex_;
  CondVar changed_;
  std::vector<Retired> versions_ TENSORD_GUARDED_BY(mutex_);
  bool is_stopped_ TENSORD_GUARDED_BY(mutex_) = false;
  Thread thread_;  // guarded by mutex_ until stopped
};

}  // namespace tensord::server
