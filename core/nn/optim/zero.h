#pragma once

#include <vector>

#include "core/distributed/group/process_group.h"
#include "core/nn/optim/optimizer.h"

namespace tensord::nn {

// ZeRO's first stage, torch.distributed.optim.ZeroRedundancyOptimizer: each rank keeps the optimizer's state of its
// share of the parameters, updates those, and gives them to the others. Gradients must be the same on all ranks, as
// after a DistributedDataParallel's pass. For optimizers whose update of a parameter depends on that one alone (all but
// LBFGS) the result is the same, bit by bit, as without it. All ranks make every call, in the same order. Not
// thread-safe; optimizer and group must outlive it.
class ZeroRedundancy {
 public:
  // The optimizer has the same groups of parameters on all ranks; it keeps this rank's share from now on. No later
  // groups.
  ZeroRedundancy(Optimizer& optimizer, distributed::ProcessGroup& group);

  // One update of all parameters.
  void step();
  // What Optimizer::state_dict() of one process would be, on rank 0; None on the others. Any number of ranks loads it
  // by Optimizer::load_state_dict, which takes this rank's share.
  ops::Value gather_state();

  // The rank of each parameter, in the order of the groups: PyTorch's rule, the largest first, each to the rank that
  // has the least.
  const std::vector<int>& owners() const { return owners_; }

 private:
  Optimizer& optimizer_;
  distributed::ProcessGroup& group_;
  std::vector<Tensor> params_;
  std::vector<int> owners_;
};

}  // namespace tensord::nn
