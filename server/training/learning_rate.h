#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/nn/optim/lr_scheduler.h"
#include "core/nn/optim/optimizer.h"
#include "server/training/jobs/job_spec.h"

namespace tensord::server {

// The job's optimizer over the model's parameters, in groups by name; 16-bit parameters get float32 copies
// (Optimizer::use_master_weights). Sets requires_grad of frozen parameters to false. Throws Error{kInvalidArgument} if
// a pattern matches no parameter or no parameter requires a gradient.
std::unique_ptr<nn::Optimizer> make_job_optimizer(const OptimizerSpec& spec,
                                                  const std::vector<std::pair<std::string, Tensor>>& parameters);

// The learning rate of a job over time: warm-up, then the schedule. Not thread-safe.
class LearningRate {
 public:
  // `total_steps` and `epochs` are 0 if the job has no such limit.
  LearningRate(const ScheduleSpec& spec, nn::Optimizer& optimizer, int64_t total_steps, int64_t total_epochs);

  void after_step();
  void after_epoch();
  void after_evaluation(const std::map<std::string, double>& metrics);
  // Of the first parameter group.
  double current() const;

  ops::Value state_dict() const;
  void load_state_dict(const ops::Value& state);

 private:
  const ScheduleSpec spec_;
  nn::Optimizer& optimizer_;
  const int64_t length_;  // number of step() calls that the schedule is made for; 0: unlimited
  int64_t steps_ = 0;
  int64_t schedule_steps_ = 0;
  std::unique_ptr<nn::LRScheduler> schedule_;
  std::unique_ptr<nn::LRScheduler> warmup_;
  std::unique_ptr<nn::ReduceLROnPlateau> plateau_;

  void step_schedule();
};

}  // namespace tensord::server
