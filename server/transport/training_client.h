#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/training/job_status.h"

namespace tensord::server {

// Calls the training service of a running daemon. All throw Error with the code and the text that the daemon gave;
// kUnavailable when it cannot be reached. For one thread.
class TrainingClient {
 public:
  explicit TrainingClient(const std::string& address);
  ~TrainingClient();

  JobStatus create(const JobSpec& spec);
  JobStatus get(const std::string& id);
  std::vector<JobStatus> list(const std::string& model);
  JobStatus pause(const std::string& id);
  JobStatus resume(const std::string& id);
  JobStatus cancel(const std::string& id);
  void remove(const std::string& id);
  // (withdrawn version, served version)
  std::pair<int64_t, int64_t> roll_back(const std::string& model);
  // Brings a file; gives back the upload's id.
  std::string upload(const std::string& path);

  // Called with the job now and at each change, with the points that are new; false ends the watch. Returns when the
  // job is at rest.
  using OnChange = std::function<bool(const JobStatus& status, const std::vector<CurvePoint>& points)>;
  void watch(const std::string& id, const OnChange& on_change);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tensord::server
