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

// Makes what jobs have learned new versions of models. Works on a thread of normal priority, which the threads of the
// new version inherit; jobs' own threads have a low one. Thread-safe.
class Publisher {
 public:
  explicit Publisher(Repository& repository);
  ~Publisher();

  // `write` puts the model into a file, in a format whose files are named `file_name`. Beside it lies `origin` as
  // job.json (see JobInputs::origin_of): it says where the version comes from, and by its "job" a job that was
  // interrupted here finds that it has published already. Waits until the version is served. Throws Error; nothing has
  // changed then.
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
