#pragma once

#include <vector>

#include "core/distributed/group/process_group.h"
#include "core/nn/optim/optimizer.h"

namespace tensord::nn {

// ZeRO stage 1, torch.distributed.optim.ZeroRedundancyOptimizer: each rank keeps the optimizer state of its share of
// the parameters, updates them, and sends them to the others. Gradients must be equal on all ranks, as after a
// DistributedDataParallel pass. For optimizers that update each parameter independently (all but LBFGS) the result is
// bitwise the same as without it. All ranks make every call, in the same order. Not thread-safe; optimizer and group
// must outlive it.
class ZeroRedundancy {
 public:
  // The optimizer must have the same parameter groups on all ranks. From now on it keeps only this rank's share. No
  // groups can be added later.
  ZeroRedundancy(Optimizer& optimizer, distributed::ProcessGroup& group);

  // One update of all parameters.
  void step();
  // On rank 0: the Optimizer::state_dict() that a single process would have; None on the others.
  // Optimizer::load_state_dict loads it with any number of ranks and takes this rank's share.
  ops::Value gather_state();

  // The owner rank of each parameter, in the order of the groups. PyTorch's rule: largest first, each to the rank with
  // the least load.
  const std::vector<int>& owners() const { return owners_; }

 private:
  Optimizer& optimizer_;
  distributed::ProcessGroup& group_;
  std::vector<Tensor> params_;
  std::vector<int> owners_;
};

}  // namespace tensord::nn
