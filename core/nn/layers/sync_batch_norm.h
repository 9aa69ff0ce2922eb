#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "core/distributed/group/process_group.h"
#include "core/nn/layers/layers.h"
#include "core/ops/op.h"

namespace tensord::nn {

// Batch norm in training whose mean and variance are those of all ranks' elements together, as if one process had all
// rows: torch.nn.SyncBatchNorm. `input` is [N, C, ...]; N may differ between ranks, and be 0. weight, bias and the
// running statistics are [C]; the latter are updated alike on all ranks. The gradient of the input counts what each
// element does to all ranks' outputs; those of weight and bias are this rank's part of the sum.
//
// All ranks call it, in the same order, and their backward passes as well, which only runs once. The group must live
// until then, as `keeper` does, and nothing else may be started on it meanwhile. Throws Error: where there is one value
// a channel on all ranks together, for tensors that are not on the CPU, and whatever the group says.
Tensor sync_batch_norm(distributed::ProcessGroup& group, const Tensor& input, const std::optional<Tensor>& weight,
                       const std::optional<Tensor>& bias, const std::optional<Tensor>& running_mean,
                       const std::optional<Tensor>& running_var, double momentum, double eps,
                       std::shared_ptr<void> keeper = nullptr);

// A layer of it for inputs of any rank from 2; in evaluation it is BatchNorm2d's. The group must outlive it.
class SyncBatchNorm final : public Layer {
 public:
  SyncBatchNorm(int64_t features, distributed::ProcessGroup& group, BatchNormOptions options = {});
  using Layer::forward;
  Tensor forward(const Tensor& input) override;
  const Tensor weight, bias;  // [features] or undefined
  const Tensor running_mean, running_var, num_batches_tracked;

 private:
  distributed::ProcessGroup& group_;
  const BatchNormOptions options_;
};

// Stands in for "aten::batch_norm" or "aten::native_batch_norm" in a module's code
// (jit::LoadOptions::operator_overrides): in training it is sync_batch_norm over the group that `group` gives at each
// call; where that is null or has one rank, and in evaluation, it is the operator itself.
std::shared_ptr<const ops::Op> batch_norm_over_ranks(std::string_view name,
                                                     std::function<distributed::ProcessGroup*()> group);

}  // namespace tensord::nn
