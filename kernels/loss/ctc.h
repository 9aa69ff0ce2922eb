#pragma once

#include <cstdint>
#include <vector>

#include "core/ops/unbox.h"
#include "core/tensor/tensor.h"

namespace tensord::kernels {

// Sizes and lengths of a batch of ctc_loss, checked; not its labels.
struct CtcBatch {
  int64_t steps, count, classes, blank, states;  // states: of the longest target
  const ops::IntList &input_lengths, &target_lengths;
  std::vector<int64_t> first;  // label of each sample in the dense targets

  CtcBatch(const Tensor& log_probs, const Tensor& targets, const ops::IntList& input_lengths,
           const ops::IntList& target_lengths, int64_t blank);
};

}  // namespace tensord::kernels
