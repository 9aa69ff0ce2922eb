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

// What a trainer does together with the trainers of the other ranks. Every call is made by all of them, in the same
// order. Not thread-safe.
class RankGroup {
 public:
  // Compares the parameters and the step that ranks begin with. `compression` is what gather_compression() gave, None
  // at the beginning; `looks_for_sparse`: gradients may be sparse, which the first pass shows. The group must outlive
  // it.
  RankGroup(distributed::ProcessGroup& group, const std::vector<std::pair<std::string, Tensor>>& parameters,
            int64_t step, const DistributionSpec& spec, const ops::Value& compression, bool looks_for_sparse);

  bool is_first() const { return group_.rank() == 0; }
  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }

  // Gives every rank rank 0's buffers.
  void share_buffers(const jit::Module& module);
  // A pass over the rank's rows of a batch, of which all ranks together have `all_rows`: afterwards parameters have the
  // gradient of the batch's mean loss. `loss` is this rank's, undefined where it has no row.
  void backward(const Tensor& loss, int64_t rows, int64_t all_rows);
  struct Agreed {
    double loss;         // the batch's mean
    JobRequest request;  // what rank 0 knows to be wanted
    bool checkpoint_is_due;
  };
  // Started before the pass, so that it costs no time of its own; rank 0's request and clock count.
  void tell(double loss, int64_t rows, int64_t all_rows, JobRequest request, bool checkpoint_is_due);
  Agreed agreed();
  // Rank 0's text, on all ranks.
  std::string shared(const std::string& text);
  // Rank 0's, on all ranks, where there is no step to tell it with.
  JobRequest shared_request(JobRequest request);
  // What the compression of gradients keeps, of all ranks, on rank 0; None on others and where it keeps nothing. Other
  // numbers of ranks go on from it without the errors that each rank still owes.
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
