#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/distributed/ddp/power_sgd.h"
#include "core/distributed/ddp/reducer.h"
#include "core/distributed/group/process_group.h"
#include "core/jit/runtime/module.h"
#include "server/training/jobs/job_spec.h"
#include "server/training/jobs/training_job.h"

namespace tensord::server {

// The trainer's collective operations. All ranks make the same calls in the same order. Not thread-safe.
class RankGroup {
 public:
  // Checks that all ranks start with the same parameters and step. `compression`: the result of gather_compression(),
  // or None at the start; `looks_for_sparse`: gradients may be sparse, which the first pass shows. The group must
  // outlive it.
  RankGroup(distributed::ProcessGroup& group, const std::vector<std::pair<std::string, Tensor>>& parameters,
            int64_t step, const DistributionSpec& spec, const ops::Value& compression, bool looks_for_sparse);

  bool is_first() const { return group_.rank() == 0; }
  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }

  // Broadcasts rank 0's buffers.
  void share_buffers(const jit::Module& module);
  // Backward pass over this rank's rows of a batch, of which all ranks together have `all_rows`. Afterwards the
  // parameters have the gradient of the batch's mean loss. `loss` is undefined if this rank has no rows.
  void backward(const Tensor& loss, int64_t rows, int64_t all_rows);
  struct Agreed {
    double loss;         // mean of the batch
    JobRequest request;  // known to rank 0
    bool checkpoint_is_due;
  };
  // Started before the backward pass, so that it takes no extra time; rank 0's request and clock count.
  void tell(double loss, int64_t rows, int64_t all_rows, JobRequest request, bool checkpoint_is_due);
  Agreed agreed();
  // Whether it is so on every rank.
  bool all_of(bool is_so);
  // Broadcasts rank 0's string.
  std::string shared(const std::string& text);
  // Broadcasts rank 0's request outside of a step.
  JobRequest shared_request(JobRequest request);
  // The gradient compression's state of all ranks, on rank 0; None on others, and if there is no state. A different
  // number of ranks can resume from it, without the error feedback of each rank.
  ops::Value gather_compression();

  std::chrono::nanoseconds waited() const { return waited_ + reducer_->waited(); }

 private:
  std::unique_ptr<distributed::Reducer> make_reducer(std::vector<std::string> sparse);
  void find_sparse_gradients(const Tensor& loss);

  distributed::ProcessGroup& group_;
  const DistributionSpec& spec_;
  const std::vector<std::pair<std::string, Tensor>> parameters_;
  bool looks_for_sparse_;
  std::unique_ptr<distributed::PowerSgd> power_sgd_;  // null: another compression
  std::unique_ptr<distributed::Reducer> reducer_;
  Tensor told_;
  distributed::WorkPtr telling_;
  std::chrono::nanoseconds waited_{0};
};

}  // namespace tensord::server
