#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/nn/layers/containers.h"
#include "core/nn/layers/layers.h"

namespace tensord::nn {

// Softmax over many classes, sorted by frequency. Classes below the first cutoff have scores of their own in the head.
// The others form clusters, each with one score in the head and a smaller network, which is computed only for rows
// whose target is in the cluster. forward(input [N, in_features], target int64 [N]) returns the log-probabilities of
// the targets [N] and their mean loss.
class AdaptiveLogSoftmaxWithLoss final : public Module {
 public:
  AdaptiveLogSoftmaxWithLoss(int64_t in_features, int64_t num_classes, std::vector<int64_t> cutoffs,
                             double div_value = 4, bool head_bias = false);
  Tensors forward(const Tensors& inputs) override;
  // Log-probabilities of all classes, [N, num_classes].
  Tensor log_prob(const Tensor& input) const;
  // The most likely class of each row.
  Tensor predict(const Tensor& input) const;

 private:
  std::vector<int64_t> cutoffs_;  // ending with the number of classes
  std::shared_ptr<Linear> head_;
  std::shared_ptr<ModuleList> tail_;
};

}  // namespace tensord::nn
