#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "core/distributed/group/process_group.h"
#include "core/nn/layers/layers.h"
#include "core/ops/op.h"

namespace tensord::nn {

// Batch norm in training with the mean and variance over the elements of all ranks, as if one process had all rows:
// torch.nn.SyncBatchNorm. `input` is [N, C, ...]; N may differ between ranks, and may be 0. weight, bias and the
// running statistics are [C]; the latter are updated alike on all ranks. The gradient of the input includes the effect
// of each element on all ranks' outputs. The gradients of weight and bias are this rank's part of the sum.
//
// All ranks call it in the same order, and run their backward passes in the same order, at most once. The group must
// live until then (`keeper` can keep it alive), and nothing else may be started on it meanwhile. Throws Error if a
// channel has a single value over all ranks, for tensors that are not on the CPU, and for errors of the group.
Tensor sync_batch_norm(distributed::ProcessGroup& group, const Tensor& input, const std::optional<Tensor>& weight,
                       const std::optional<Tensor>& bias, const std::optional<Tensor>& running_mean,
                       const std::optional<Tensor>& running_var, double momentum, double eps,
                       std::shared_ptr<void> keeper = nullptr);

// A sync_batch_norm layer for inputs of rank 2 and more; in evaluation it is BatchNorm2d. The group must outlive it.
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

// Replaces "aten::batch_norm" or "aten::native_batch_norm" in a module's code (jit::LoadOptions::operator_overrides).
// In training it runs sync_batch_norm over the group that `group` returns at each call. If that is null or has one
// rank, and in evaluation, it calls the original operator.
std::shared_ptr<const ops::Op> batch_norm_over_ranks(std::string_view name,
                                                     std::function<distributed::ProcessGroup*()> group);

}  // namespace tensord::nn
