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

struct PoolProblem {
  PoolWindows windows;
  size_t spatial = 2;
  bool is_max = false;
  PoolDivisor divisor = PoolDivisor::kInside;
  int64_t fixed = 1;

  int64_t divisor_at(int64_t d, int64_t h, int64_t w) const;
};

struct PoolExtents {
  int64_t batch, channels;
  std::array<int64_t, 3> in, out;
  int64_t in_plane() const { return in[0] * in[1] * in[2]; }
  int64_t out_plane() const { return out[0] * out[1] * out[2]; }
};
PoolExtents pool_extents(const Tensor& input, const Tensor& output, size_t spatial);
// Whether both lie as N, spatial…, C, and not row-major; infer gives the output the input's order.
bool is_pool_last(const Tensor& input, const Tensor& output);

// Window maximum (NaN wins) or average. `indices` (int64, flat within the channel's plane) may be undefined.
// Output and indices lie in memory as is_pool_last says of the input.
void run_pool(const PoolProblem& pool, const Tensor& input, Tensor& out, const Tensor& indices = Tensor());
// f32 without indices, row-major or last.
void run_pool(const PoolProblem& pool, const PoolExtents& extents, bool is_last, const float* x, float* out);

// Output pixels, counted over all images, of f32 in memory order N, spatial…, C.
void pool_last_pixels(const PoolProblem& pool, const PoolExtents& extents, const float* x, float* out, int64_t begin,
                      int64_t end);

}  // namespace tensord::kernels
