#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "server/training/jobs/job_status.h"

namespace tensord::server {

// Records the inputs of a job: <folder>/inputs.json has size and SHA-256 of the starting archive and of each data file,
// with the first step that used it. If a file has changed when the job resumes, the new content is added beside the old
// one.
class JobInputs {
 public:
  JobInputs(std::filesystem::path folder, std::string data_folder)
      : folder_(std::move(folder)), data_folder_(std::move(data_folder)) {}

  // Call at each start of the job, which continues from `step`. `is_interrupted` is checked while large files are read;
  // if it returns true, nothing is recorded. Throws Error if a file cannot be read.
  void note(const JobSpec& spec, const std::filesystem::path& base_archive, int64_t step,
            const std::function<bool()>& is_interrupted) const;

  // The contents of job.json beside a published version: where it comes from. Step and metrics are those of the
  // published weights, which are not the last ones if `publish.when` is "best".
  std::string origin_of(const JobStatus& job) const;

 private:
  std::filesystem::path file() const { return folder_ / "inputs.json"; }

  const std::filesystem::path folder_;
  const std::string data_folder_;
};

// The step whose weights are published, with its metrics.
int64_t published_step(const JobStatus& job);
std::map<std::string, double> published_metrics(const JobStatus& job);

}  // namespace tensord::server
