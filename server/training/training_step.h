#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/jit/runtime/step/planned_step.h"
#include "core/nn/optim/optimizer.h"
#include "core/nn/optim/zero.h"
#include "server/training/jobs/job_spec.h"
#include "server/training/jobs/training_job.h"
#include "server/training/ranks/rank_group.h"
#include "server/training/ranks/statistics_groups.h"
#include "server/training/training_model.h"

namespace tensord::server {

// One update of a job's parameters: loss, backward, the gradients of other ranks, clipping, optimizer. What it works on
// must outlive it. Not thread-safe.
class TrainingStep {
 public:
  struct Parts {
    const JobSpec& spec;
    TrainingModel& model;
    nn::Optimizer& optimizer;
    nn::ZeroRedundancy* zero;             // null: each rank updates all parameters
    StatisticsGroups* statistics;         // null: batch norms are each rank's own
    RankGroup* ranks;                     // null: the job has one process
    std::string plans;                    // "off", "exact" or "fused": how steps that repeat are planned
    std::function<bool()> is_cancelled;   // not even the step is to end then
    std::function<JobRequest()> request;  // what rank 0 tells the others
    std::function<bool()> is_checkpoint_due;
  };
  // `parameters` are those that are trained.
  TrainingStep(Parts parts, std::vector<std::pair<std::string, Tensor>> parameters);

  struct Done {
    double loss;  // of the whole batch
    double gradient_norm = 0;
    JobRequest request = JobRequest::kNone;  // of all ranks; of a job of one process none
    bool checkpoint_is_due = false;
    bool is_planned = false;
    std::string plan_reason;  // why steps like this one stay interpreted; empty: they do not, or it is not known yet
  };
  // `rows`: of the batch, of which `batch` has this rank's. Throws Error, for numbers that are not finite too.
  Done run(std::span<const Tensor> batch, int64_t rows, bool wants_norm);

 private:
  void say_plan(Done& done) const;
  // Leaves the gradients of the batch in the parameters, clipped. Gives back the loss, detached.
  Tensor compute_gradients(std::span<const Tensor> batch, int64_t rows, bool wants_norm, double& norm);
  Tensor loss_of(std::span<const Tensor> batch);
  // Why steps are interpreted, in the form that the job chose; empty: nothing is in the way.
  std::string unsupported_plan_reason() const;
  Tensor run_planned(std::span<const Tensor> batch);
  // Of the loss, with those of other ranks; undefined where this rank has no row. From here to clip() the parameters
  // have the gradients of the whole batch.
  void backward(const Tensor& loss, int64_t own_rows, int64_t rows);
  void clip(bool wants_norm, double& norm);
  void check_loss(double loss, std::span<const Tensor> batch) const;

  const Parts parts_;
  const std::vector<std::pair<std::string, Tensor>> parameters_;
  std::vector<Tensor> tensors_;  // the same without names
  const bool needs_closure_;
  std::unique_ptr<jit::PlannedStep> planned_;
  bool is_first_ = true;  // no step was made
};

}  // namespace tensord::server
