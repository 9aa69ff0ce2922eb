#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "server/training/jobs/job_status.h"

namespace tensord::server {

// What a job learns from, in its folder: <folder>/inputs.json has size and SHA-256 of the archive that it started from
// and of each data file, with the step from which on the file was so. A file that has changed when the job goes on is
// noted beside the one before, so that nobody has to guess afterwards.
class JobInputs {
 public:
  JobInputs(std::filesystem::path folder, std::string data_folder)
      : folder_(std::move(folder)), data_folder_(std::move(data_folder)) {}

  // To be called at each start of the job, which goes on from `step`. `is_interrupted` is asked while large files are
  // read; true ends it, with nothing noted. Throws Error when a file cannot be read.
  void note(const JobSpec& spec, const std::filesystem::path& base_archive, int64_t step,
            const std::function<bool()>& is_interrupted) const;

  // What lies beside a published version as job.json: where it comes from, for whoever asks later. The step and the
  // metrics are those of the weights that are published, which are not the last ones when `publish.when` is "best".
  std::string origin_of(const JobStatus& job) const;

 private:
  std::filesystem::path file() const { return folder_ / "inputs.json"; }

  const std::filesystem::path folder_;
  const std::string data_folder_;
};

// The step whose weights the job publishes, and what was measured there.
int64_t published_step(const JobStatus& job);
std::map<std::string, double> published_metrics(const JobStatus& job);

}  // namespace tensord::server
