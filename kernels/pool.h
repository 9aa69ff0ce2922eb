#pragma once

#include <array>
#include <optional>
#include <vector>

#include "core/tensor/tensor.h"

namespace tensord::kernels {

// The windows of a pooling along one spatial dimension: output i reads input begin[i], begin[i] + step … < end[i].
struct PoolAxis {
  std::vector<int64_t> begin, end;
  std::vector<int64_t> extent;  // elements of the window, padding included
  int64_t step = 1;
};

// Three dimensions always; missing leading ones are of size 1.
struct PoolWindows {
  std::array<PoolAxis, 3> axes;
};

// What an average is divided by.
enum class PoolDivisor { kInside, kWithPadding, kFixed };

// Window maximum; NaN wins. `indices` (int64, flat within the channel's plane) may be undefined.
// Output and indices lie in memory as PoolLayout says of the input.
void max_pool(const PoolWindows& windows, size_t spatial, const Tensor& input, Tensor& out, Tensor indices);
void avg_pool(const PoolWindows& windows, size_t spatial, const Tensor& input, PoolDivisor divisor, int64_t fixed,
              Tensor& out);

}  // namespace tensord::kernels
