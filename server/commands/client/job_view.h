#pragma once

#include <tensord/client/training.h>

#include <iosfwd>
#include <string>
#include <vector>

#include "server/commands/client/progress.h"
#include "server/training/jobs/job_status.h"

namespace tensord::server {

// Shows a job while it runs: on a terminal a line with a progress bar, and at the end a small plot of the loss and how
// it went. With `json` one JSON object for each change instead. Not thread-safe.
class JobView {
 public:
  explicit JobView(bool json);

  void show(const JobStatus& status, const std::vector<CurvePoint>& points);
  // The plot, and how it ended.
  void finish();
  const JobStatus& status() const { return status_; }

 private:
  const bool json_;
  ProgressLine line_;
  JobStatus status_;
  std::vector<CurvePoint> points_;
};

// Watches a job until it is at rest, shows it, and gives it as it was then. Throws client::Error.
JobStatus watch_job(client::TrainingClient& training, const std::string& id, bool json,
                    const client::CallOptions& options = {});
// One line for a job: "digits-3f9a1c  RUNNING  step 120/400  loss 0.231".
std::string job_line(const JobStatus& status);
// All there is to say, over several lines.
std::string job_report(const JobStatus& status);
void print_jobs(std::ostream& out, const std::vector<JobStatus>& jobs);
// A plot of `width` × `height` characters with the range of the values beside it. Empty without values.
std::string plot(const std::vector<double>& values, int width, int height);

}  // namespace tensord::server
