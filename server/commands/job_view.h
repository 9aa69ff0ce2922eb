#pragma once

#include <string>
#include <vector>

#include "server/training/job_status.h"

namespace tensord::server {

// Shows a job on a terminal: a line with a progress bar that is drawn again at each change, and at the end a small
// plot of the loss. With `json` one JSON object a line instead. Not thread-safe.
class JobView {
 public:
  explicit JobView(bool json);

  void show(const JobStatus& status, const std::vector<CurvePoint>& points);
  // The plot, and how it ended.
  void finish();
  const JobStatus& status() const { return status_; }

 private:
  void draw_line();

  const bool json_;
  const bool is_terminal_;
  JobStatus status_;
  std::vector<CurvePoint> points_;
  bool has_line_ = false;
};

// One line for a job: "digits-3f9a1c  RUNNING  step 120/400  loss 0.231".
std::string job_line(const JobStatus& status);
// All there is to say, over several lines.
std::string job_report(const JobStatus& status);
// A plot of `width` × `height` characters with the range of the values beside it. Empty without values.
std::string plot(const std::vector<double>& values, int width, int height);
// 3725 → "1:02:05"; below 0: "-:--".
std::string duration_text(double seconds);

}  // namespace tensord::server
