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
#include "server/training/loss_scale.h"
#include "server/training/ranks/rank_group.h"
#include "server/training/ranks/statistics_groups.h"
#include "server/training/training_model.h"

namespace tensord::server {

// One update of a job's parameters: loss, backward, all-reduce of gradients, clipping, optimizer. Everything it uses
// must outlive it. Not thread-safe.
class TrainingStep {
 public:
  struct Parts {
    const JobSpec& spec;
    TrainingModel& model;
    nn::Optimizer& optimizer;
    nn::ZeroRedundancy* zero;             // null: each rank updates all parameters
    StatisticsGroups* statistics;         // null: batch norm statistics are per rank
    RankGroup* ranks;                     // null: single process
    LossScale* loss_scale = nullptr;      // null: none
    std::string plans;                    // "off", "exact" or "fused": how steps that repeat are planned
    std::function<bool()> is_cancelled;   // stops even a running step
    std::function<JobRequest()> request;  // the request that rank 0 passes to the others
    std::function<bool()> is_checkpoint_due;
  };
  // `parameters`: those that are trained.
  TrainingStep(Parts parts, std::vector<std::pair<std::string, Tensor>> parameters);

  struct Done {
    double loss;  // of the whole batch
    double gradient_norm = 0;
    JobRequest request = JobRequest::kNone;  // agreed by all ranks; kNone for a single process
    bool checkpoint_is_due = false;
    bool is_planned = false;
    bool is_skipped = false;  // gradients or loss were not finite, and the loss scale is smaller now
    std::string plan_reason;  // why steps like this one are interpreted; empty: they are not, or it is not known yet
  };
  // `rows` is the size of the batch, of which `batches` have this rank's part; several are computed one after the
  // other. Throws Error, also for values that are not finite.
  Done run(std::span<const std::vector<Tensor>> batches, int64_t rows, bool wants_norm);

 private:
  void say_plan(Done& done) const;
  // Computes the batch's clipped gradients, in the parameters. Returns the detached loss.
  Tensor compute_gradients(std::span<const std::vector<Tensor>> batches, int64_t rows, bool wants_norm, Done& done);
  // Adds the gradients of several batches. Returns the mean loss of all rows.
  Tensor accumulate_gradients(std::span<const std::vector<Tensor>> batches, int64_t rows);
  Tensor loss_of(std::span<const Tensor> batch);
  // Why steps cannot be planned as the job chose; empty: they can.
  std::string unsupported_plan_reason() const;
  Tensor run_planned(std::span<const Tensor> batch);
  // Backward pass including other ranks; `loss` is undefined if this rank has no rows. From here to clip(), the
  // parameters have the gradients of the whole batch.
  void backward(const Tensor& loss, int64_t own_rows, int64_t rows);
  void clip(const Tensor& loss, bool wants_norm, Done& done);
  // By which the gradients are too large.
  double scale() const { return parts_.loss_scale ? parts_.loss_scale->value() : 1; }
  // Throws Error for a loss that is not finite, unless the step is to be skipped.
  void check_loss(double loss, std::span<const Tensor> batch) const;

  const Parts parts_;
  const std::vector<std::pair<std::string, Tensor>> parameters_;
  std::vector<Tensor> tensors_;  // the same without names
  const bool needs_closure_;
  std::unique_ptr<jit::PlannedStep> planned_;
  bool is_first_ = true;  // no step was made yet
};

}  // namespace tensord::server
