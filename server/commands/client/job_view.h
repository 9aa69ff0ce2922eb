#pragma once

#include <tensord/client/training.h>

#include <iosfwd>
#include <string>
#include <vector>

#include "server/commands/client/progress.h"
#include "server/training/jobs/job_status.h"

namespace tensord::server {

// Shows a running job: on a terminal a progress bar, and at the end a small plot of the loss and the result. With
// `json`, one JSON object per change. Not thread-safe.
class JobView {
 public:
  explicit JobView(bool json);

  void show(const JobStatus& status, const std::vector<CurvePoint>& points);
  // Prints the plot and the result.
  void finish();
  const JobStatus& status() const { return status_; }

 private:
  const bool json_;
  ProgressLine line_;
  JobStatus status_;
  std::vector<CurvePoint> points_;
};

// Watches and shows a job until it reaches a terminal state, and returns its last status. Throws client::Error.
JobStatus watch_job(client::TrainingClient& training, const std::string& id, bool json,
                    const client::CallOptions& options = {});
// One line for a job: "digits-3f9a1c  RUNNING  step 120/400  loss 0.231".
std::string job_line(const JobStatus& status);
// A full report on several lines.
std::string job_report(const JobStatus& status);
void print_jobs(std::ostream& out, const std::vector<JobStatus>& jobs);
// A plot of `width` × `height` characters, with the range of the values beside it. Empty without values.
std::string plot(const std::vector<double>& values, int width, int height);

}  // namespace tensord::server
