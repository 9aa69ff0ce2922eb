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
  int64_t kernel = 0, stride = 0, padding = 0;  // where all windows are alike; kernel 0: they are not
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
// Whether a batch lies as N, spatial…, C, and not row-major; infer gives the output the input's order.
bool is_pool_last(const Tensor& t, size_t spatial);
bool is_pool_last(const Tensor& input, const Tensor& output, size_t spatial);

// Window maximum (NaN wins) or average. `indices` (int64, flat within the channel's plane) may be undefined.
// Output and indices lie in memory as is_pool_last says of the input.
void run_pool(const PoolProblem& pool, const Tensor& input, Tensor& out, const Tensor& indices = Tensor());
// On a CUDA device, any strides. The backward of max takes its indices, or finds them again where they are undefined.
void run_pool_cuda(const PoolProblem& pool, const Tensor& input, const Tensor& out, const Tensor& indices);
void max_pool_backward_cuda(const PoolProblem& pool, const Tensor& g, const Tensor& x, const Tensor& indices,
                            const Tensor& out);
void avg_pool_backward_cuda(const PoolProblem& pool, const Tensor& g, const Tensor& out);
// f32 without indices, row-major or last.
void run_pool(const PoolProblem& pool, const PoolExtents& extents, bool is_last, const float* x, float* out);

// What max pooling gives, each where it is asked for: results, indices as of run_pool, and the sum in `dx` of `g` at
// the largest pixel of each window (dx is filled with 0 before).
template <class T>
struct MaxPoolTarget {
  T* out = nullptr;
  int64_t* indices = nullptr;
  const T* g = nullptr;
  T* dx = nullptr;
};
// Whether the two below take it: windows alike, few enough pixels.
bool is_plain_max_pool(const PoolProblem& pool, const PoolExtents& extents);
// Row-major planes begin … end - 1 of all images' channels.
void max_pool_planes(const PoolProblem& pool, const PoolExtents& extents, const float* x, MaxPoolTarget<float> target,
                     int64_t begin, int64_t end);
void max_pool_planes(const PoolProblem& pool, const PoolExtents& extents, const double* x, MaxPoolTarget<double> target,
                     int64_t begin, int64_t end);
// Memory order N, spatial…, C: the `count` channels from `channel` on, of output pixels begin … end - 1 of all images.
// With dx a call must have whole images.
void max_pool_last(const PoolProblem& pool, const PoolExtents& extents, const float* x, MaxPoolTarget<float> target,
                   int64_t channel, int64_t count, int64_t begin, int64_t end);
void max_pool_last(const PoolProblem& pool, const PoolExtents& extents, const double* x, MaxPoolTarget<double> target,
                   int64_t channel, int64_t count, int64_t begin, int64_t end);
// The whole of either, in parallel.
template <class T>
void run_max_pool(const PoolProblem& pool, const PoolExtents& extents, bool is_last, const T* x,
                  MaxPoolTarget<T> target);

// Averages of row-major planes begin … end - 1.
void avg_pool_planes(const PoolProblem& pool, const PoolExtents& extents, const float* x, float* out, int64_t begin,
                     int64_t end);
void avg_pool_planes(const PoolProblem& pool, const PoolExtents& extents, const double* x, double* out, int64_t begin,
                     int64_t end);
// The backward of averages: dx, filled with 0 before, in planes or last as for the above.
void avg_pool_backward_planes(const PoolProblem& pool, const PoolExtents& extents, const float* g, float* dx,
                              int64_t begin, int64_t end);
void avg_pool_backward_planes(const PoolProblem& pool, const PoolExtents& extents, const double* g, double* dx,
                              int64_t begin, int64_t end);
void avg_pool_backward_last(const PoolProblem& pool, const PoolExtents& extents, const float* g, float* dx,
                            int64_t channel, int64_t count, int64_t image);
void avg_pool_backward_last(const PoolProblem& pool, const PoolExtents& extents, const double* g, double* dx,
                            int64_t channel, int64_t count, int64_t image);

// Output pixels, counted over all images, of f32 in memory order N, spatial…, C.
void pool_last_pixels(const PoolProblem& pool, const PoolExtents& extents, const float* x, float* out, int64_t begin,
                      int64_t end);

}  // namespace tensord::kernels
