#pragma once

#include <functional>
#include <future>
#include <memory>
#include <vector>

#include "core/base/mutex.h"
#include "core/base/thread.h"
#include "server/executor/model/model_version.h"

namespace tensord::server {

// Versions that are served no more. Each is kept until the last request that holds it has ended, and then goes on a
// thread of this, so that no request pays for it. Thread-safe.
class RetiredVersions {
 public:
  RetiredVersions() = default;
  ~RetiredVersions();

  // The future is ready when the version has gone; before that `on_gone` was called, on a thread of this.
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
  Thread thread_;  // by mutex_ until stopped
};

}  // namespace tensord::server
