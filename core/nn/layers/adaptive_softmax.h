#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/nn/layers/containers.h"
#include "core/nn/layers/layers.h"

namespace tensord::nn {

// Softmax over many classes, the frequent ones first: classes below the first cutoff have scores of their own in the
// head, the others come in clusters, each with one score in the head and a smaller network of its own, which is
// computed for the rows alone whose target lies in it. forward(input [N, in_features], target int64 [N]) gives the
// log-probabilities of the targets [N] and their mean loss.
class AdaptiveLogSoftmaxWithLoss final : public Module {
 public:
  AdaptiveLogSoftmaxWithLoss(int64_t in_features, int64_t num_classes, std::vector<int64_t> cutoffs,
                             double div_value = 4, bool head_bias = false);
  Tensors forward(const Tensors& inputs) override;
  // Of all classes, [N, num_classes].
  Tensor log_prob(const Tensor& input) const;
  // The likeliest class of each row.
  Tensor predict(const Tensor& input) const;

 private:
  std::vector<int64_t> cutoffs_;  // with the number of classes at the end
  std::shared_ptr<Linear> head_;
  std::shared_ptr<ModuleList> tail_;
};

}  // namespace tensord::nn
