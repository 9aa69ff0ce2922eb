#pragma once

#include "core/tensor/tensor.h"

namespace tensord::kernels {

// Ranges of numbers, float32, and the integers for them.
struct ObservedRanges {
  const Tensor &least, &greatest;
  int64_t min, max;
  bool is_symmetric;
};
// PyTorch's choice for each range. Throws Error where a range has no numbers.
void choose_quantizers(const ObservedRanges& ranges, const Tensor& scales, const Tensor& zero_points);

}  // namespace tensord::kernels
