#pragma once

#include <deque>
#include <functional>
#include <future>
#include <string>

#include "core/base/mutex.h"
#include "core/base/thread.h"
#include "server/repository/repository.h"
#include "server/training/jobs/training_job.h"

namespace tensord::server {

// Publishes trained models as new versions. Works on a thread of normal priority, which the version's threads inherit;
// jobs' own threads have a low one. Thread-safe.
class Publisher {
 public:
  explicit Publisher(Repository& repository);
  ~Publisher();

  // `write` writes the model to a file, in a format whose files are named `file_name`. `origin` is stored beside it as
  // job.json (see JobInputs::origin_of): it says where the version comes from, and lets a job that was interrupted here
  // find out that it has already published. Returns when the version is served. Throws Error; nothing has changed then.
  Repository::Added publish(const JobStatus& job, const std::string& file_name, const std::string& origin,
                            const std::function<void(const std::string& path)>& write);

 private:
  Repository::Added publish_here(const JobStatus& job, const std::string& file_name, const std::string& origin,
                                 const std::function<void(const std::string& path)>& write);
  void work();

  Repository& repository_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::packaged_task<Repository::Added()>> tasks_ TENSORD_GUARDED_BY(mutex_);
  bool is_stopped_ TENSORD_GUARDED_BY(mutex_) = false;
  Thread thread_;
};

}  // namespace tensord::server
