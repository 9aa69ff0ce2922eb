#pragma once

#include <array>
#include <vector>

#include "core/tensor/tensor.h"

namespace tensord::kernels {

// How one spatial dimension is resampled: output i is the sum over t of weight[i * taps + t] times
// input index[i * taps + t].
struct ResampleAxis {
  int64_t taps = 1;
  std::vector<int64_t> index;
  std::vector<double> weight;
};

// Separable resampling over three dimensions, missing leading ones of size 1. With one tap everywhere the
// elements are copied, for every dtype; else they are floating. The output lies in memory as the input does
// (planes or channels_last).
void resample(const std::array<ResampleAxis, 3>& axes, size_t spatial, const Tensor& input, Tensor& out);

}  // namespace tensord::kernels
