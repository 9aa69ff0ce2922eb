#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/base/clock.h"
#include "core/tensor/allocator.h"
#include "server/training/jobs/training_job.h"

namespace tensord::server {

// Turns steps into curve points and the progress that clients see. Which steps get points depends only on the job's
// length, and on whether a loss since the last point was finite; the status is updated at most ten times a second. Not
// thread-safe.
class ProgressMeter {
 public:
  // Continues from the job's progress.
  ProgressMeter(TrainingJob& job, OwnerId owner, int64_t total_steps, const Clock& clock = Clock::system());

  // Whether the next step has a point, if there is a loss for it, and needs its gradient norm.
  bool wants_point(int64_t step) const { return step % point_interval_ == 0 || step == total_steps_; }
  struct Step {
    int64_t step = 0;
    double epoch = 0;
    int64_t rows = 0;
    double loss = 0;
    double learning_rate = 0;
    double gradient_norm = -1;  // below 0: not measured
    int64_t next_batch = 0;
    bool is_planned = false;
    bool is_skipped = false;
    double loss_scale = 0;  // of the next step
  };
  void add_step(const Step& step);
  void add_evaluation(int64_t step, double epoch, const std::map<std::string, double>& metrics);
  // Updates the status now.
  void flush();

 private:
  struct Sums {
    double loss = 0;
    int64_t steps = 0;
    int64_t losses = 0;  // how many are in `loss`: those that are finite
    int64_t rows = 0;
    int64_t since_ns = 0;
  };
  double samples_per_second(int64_t now_ns) const;

  TrainingJob& job_;
  const OwnerId owner_;
  const int64_t total_steps_;
  const int64_t point_interval_;
  const Clock& clock_;
  const int64_t start_ns_;
  int64_t first_step_ = 0;  // steps before this run
  int64_t flushed_ns_ = 0;
  JobProgress progress_;
  Sums point_;  // since the last point
  Sums rate_;   // since the last flush
};

}  // namespace tensord::server
