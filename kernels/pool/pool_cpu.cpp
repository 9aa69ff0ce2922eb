// Pooling on the CPU: one body for planes (N, C, spatial), and one for channels_last, whose inner loop runs over the
// channels of a window's pixel.
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/parallel.h"
#include "kernels/base/half_rows.h"
#include "kernels/pool/pool.h"

namespace tensord::kernels {
namespace {

using Extents = PoolExtents;

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<ComputeType<T>>)
    return std::isnan(static_cast<ComputeType<T>>(value));
  else
    return false;
}

template <class T>
T lowest() {
  if constexpr (std::is_floating_point_v<ComputeType<T>>)
    return static_cast<T>(-std::numeric_limits<ComputeType<T>>::infinity());
  else
    return std::numeric_limits<T>::lowest();
}

// Calls fn(input pixel) for each pixel in the window of output (d, h, w).
template <class Fn>
void for_each_pixel(const PoolWindows& windows, const Extents& e, int64_t d, int64_t h, int64_t w, Fn&& fn) {
  const auto& [ad, ah, aw] = windows.axes;
  for (int64_t i = ad.begin[d]; i < ad.end[d]; i += ad.step) {
    for (int64_t j = ah.begin[h]; j < ah.end[h]; j += ah.step) {
      for (int64_t k = aw.begin[w]; k < aw.end[w]; k += aw.step) fn((i * e.in[1] + j) * e.in[2] + k);
    }
  }
}

int64_t first_pixel(const PoolWindows& windows, const Extents& e, int64_t d, int64_t h, int64_t w) {
  const auto& [ad, ah, aw] = windows.axes;
  return (ad.begin[d] * e.in[1] + ah.begin[h]) * e.in[2] + aw.begin[w];
}

// Runs fn(n, d, h, w) over all output pixels (channels_last) or fn(plane, d, h, w) over all planes.
template <class Fn>
void for_each_output(int64_t outer, const Extents& e, int64_t work, Fn&& fn) {
  const int64_t plane = e.out_plane();
  parallel_for(outer * plane, std::max<int64_t>(1, 16384 / std::max<int64_t>(work, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t p = i % plane;
                   fn(i / plane, p / (e.out[1] * e.out[2]), p / e.out[2] % e.out[1], p % e.out[2], p);
                 }
               });
}

int64_t window_work(const PoolWindows& windows) {
  int64_t work = 1;
  for (const PoolAxis& axis : windows.axes)
    work *= axis.begin.empty() ? 1 : std::max<int64_t>(1, (axis.end[0] - axis.begin[0]) / axis.step);
  return work;
}

template <class T>
void max_planes(const PoolWindows& windows, const Extents& e, const T* x, T* out, int64_t* indices) {
  for_each_output(e.batch * e.channels, e, window_work(windows),
                  [&](int64_t plane, int64_t d, int64_t h, int64_t w, int64_t p) {
                    const T* from = x + plane * e.in_plane();
                    T best = lowest<T>();
                    int64_t index = first_pixel(windows, e, d, h, w);
                    for_each_pixel(windows, e, d, h, w, [&](int64_t pixel) {
                      if (from[pixel] > best || is_nan(from[pixel])) {
                        best = from[pixel];
                        index = pixel;
                      }
                    });
                    out[plane * e.out_plane() + p] = best;
                    if (indices) indices[plane * e.out_plane() + p] = index;
                  });
}

template <class T>
void max_row(const T* x, T* best, int64_t count) {
  for (int64_t c = 0; c < count; ++c) best[c] = x[c] > best[c] || is_nan(x[c]) ? x[c] : best[c];
}
template <class T>
void max_last(const PoolWindows& windows, const Extents& e, const T* x, T* out, int64_t* indices) {
  const int64_t channels = e.channels;
  for_each_output(
      e.batch, e, channels * window_work(windows), [&](int64_t n, int64_t d, int64_t h, int64_t w, int64_t p) {
        const T* from = x + n * e.in_plane() * channels;
        T* best = out + (n * e.out_plane() + p) * channels;
        std::fill(best, best + channels, lowest<T>());
        if (!indices) {
          for_each_pixel(windows, e, d, h, w, [&](int64_t pixel) { max_row(from + pixel * channels, best, channels); });
          return;
        }
        int64_t* index = indices + (n * e.out_plane() + p) * channels;
        std::fill(index, index + channels, first_pixel(windows, e, d, h, w));
        for_each_pixel(windows, e, d, h, w, [&](int64_t pixel) {
          const T* row = from + pixel * channels;
          for (int64_t c = 0; c < channels; ++c) {
            if (row[c] > best[c] || is_nan(row[c])) {
              best[c] = row[c];
              index[c] = pixel;
            }
          }
        });
      });
}

template <class T>
void avg_planes(const PoolProblem& pool, const Extents& e, const T* x, T* out) {
  using C = ComputeType<T>;
  const PoolWindows& windows = pool.windows;
  for_each_output(e.batch * e.channels, e, window_work(windows),
                  [&](int64_t plane, int64_t d, int64_t h, int64_t w, int64_t p) {
                    const T* from = x + plane * e.in_plane();
                    C sum = 0;
                    int64_t pixels = 0;
                    for_each_pixel(windows, e, d, h, w, [&](int64_t pixel) {
                      sum += static_cast<C>(from[pixel]);
                      ++pixels;
                    });
                    out[plane * e.out_plane() + p] =
                        pixels == 0 ? T(0) : static_cast<T>(sum / static_cast<C>(pool.divisor_at(d, h, w)));
                  });
}

template <class T, class C>
void add_row(const T* x, C* sum, int64_t count) {
  for (int64_t c = 0; c < count; ++c) sum[c] += static_cast<C>(x[c]);
}
template <class T>
void avg_last(const PoolProblem& pool, const Extents& e, const T* x, T* out) {
  using C = ComputeType<T>;
  const PoolWindows& windows = pool.windows;
  const int64_t channels = e.channels;
  for_each_output(e.batch, e, channels * window_work(windows),
                  [&](int64_t n, int64_t d, int64_t h, int64_t w, int64_t p) {
                    constexpr int64_t kBlock = 512;  // channels whose sums are kept at once
                    C sums[kBlock];
                    T* to = out + (n * e.out_plane() + p) * channels;
                    for (int64_t first = 0; first < channels; first += kBlock) {
                      const int64_t count = std::min(kBlock, channels - first);
                      std::fill(sums, sums + count, C(0));
                      int64_t pixels = 0;
                      for_each_pixel(windows, e, d, h, w, [&](int64_t pixel) {
                        add_row(x + (n * e.in_plane() + pixel) * channels + first, sums, count);
                        ++pixels;
                      });
                      const C by = pixels == 0 ? C(1) : static_cast<C>(pool.divisor_at(d, h, w));
                      for (int64_t c = 0; c < count; ++c) to[first + c] = static_cast<T>(sums[c] / by);
                    }
                  });
}

// Goes over the output pixels of a f32 pooling in channels_last.
void run_last(const PoolProblem& pool, const Extents& e, const float* x, float* out) {
  constexpr double kNsPerElement = 0.05;
  const double pixel_ns = kNsPerElement * static_cast<double>(e.channels * window_work(pool.windows));
  parallel_for_cost(e.batch * e.out_plane(), pixel_ns,
                    [&](int64_t begin, int64_t end) { pool_last_pixels(pool, e, x, out, begin, end); });
}

template <class T>
void run_typed(const PoolProblem& pool, const Extents& e, bool is_last, const T* x, T* out, int64_t* indices) {
  if constexpr (!std::is_integral_v<T>) {
    // Only an adaptive average gets here: the mean of no elements.
    if (!pool.is_max && e.in_plane() == 0) {
      const auto nan = static_cast<T>(std::numeric_limits<float>::quiet_NaN());
      std::fill_n(out, e.batch * e.channels * e.out_plane(), nan);
      return;
    }
  }
  if constexpr (std::is_same_v<T, float>) {
    if (is_last && !indices) return run_last(pool, e, x, out);
  }
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    if (is_plain_max_pool(pool, e)) return run_max_pool<T>(pool, e, is_last, x, {out, indices, nullptr, nullptr});
    if (!pool.is_max && !is_last) {
      const double plane_ns = 0.3 * static_cast<double>(e.out_plane() * window_work(pool.windows));
      return parallel_for_cost(e.batch * e.channels, plane_ns,
                               [&](int64_t begin, int64_t end) { avg_pool_planes(pool, e, x, out, begin, end); });
    }
  }
  if (pool.is_max) {
    is_last ? max_last<T>(pool.windows, e, x, out, indices) : max_planes<T>(pool.windows, e, x, out, indices);
  } else if constexpr (!std::is_same_v<T, bool>) {
    is_last ? avg_last<T>(pool, e, x, out) : avg_planes<T>(pool, e, x, out);
  }
}

// Sums are float32 anyway, and the maximum of halves is one of them.
template <class T>
void run_half(const PoolProblem& pool, const Extents& e, bool is_last, const Tensor& x, const Tensor& out,
              int64_t* indices) {
  const Tensor wide_x = Tensor::empty(Dims{x.numel()}, DType::kFloat32);
  const Tensor wide_out = Tensor::empty(Dims{out.numel()}, DType::kFloat32);
  widen_row(x.data<T>(), wide_x.data<float>(), x.numel());
  run_typed<float>(pool, e, is_last, wide_x.data<float>(), wide_out.data<float>(), indices);
  narrow_row(wide_out.data<float>(), out.data<T>(), out.numel());
}

}  // namespace

template <class T>
void run_max_pool(const PoolProblem& pool, const PoolExtents& e, bool is_last, const T* x, MaxPoolTarget<T> target) {
  const double pixel_ns = 0.1 * static_cast<double>(window_work(pool.windows));
  if (!is_last) {
    return parallel_for_cost(e.batch * e.channels, pixel_ns * static_cast<double>(e.out_plane()),
                             [&](int64_t begin, int64_t end) { max_pool_planes(pool, e, x, target, begin, end); });
  }
  if (target.dx == nullptr) {
    return parallel_for_cost(
        e.batch * e.out_plane(), pixel_ns * static_cast<double>(e.channels),
        [&](int64_t begin, int64_t end) { max_pool_last(pool, e, x, target, 0, e.channels, begin, end); });
  }
  // Windows overlap, so each part has all pixels of some channels.
  constexpr int64_t kChannels = 64;
  const int64_t blocks = (e.channels + kChannels - 1) / kChannels;
  parallel_for_cost(e.batch * blocks, pixel_ns * static_cast<double>(e.out_plane() * kChannels),
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        const int64_t channel = i % blocks * kChannels, image = i / blocks;
                        max_pool_last(pool, e, x, target, channel, std::min(kChannels, e.channels - channel),
                                      image * e.out_plane(), (image + 1) * e.out_plane());
                      }
                    });
}
template void run_max_pool(const PoolProblem&, const PoolExtents&, bool, const float*, MaxPoolTarget<float>);
template void run_max_pool(const PoolProblem&, const PoolExtents&, bool, const double*, MaxPoolTarget<double>);

int64_t PoolProblem::divisor_at(int64_t d, int64_t h, int64_t w) const {
  const auto& [ad, ah, aw] = windows.axes;
  if (divisor == PoolDivisor::kFixed) return fixed;
  if (divisor == PoolDivisor::kWithPadding) return ad.extent[d] * ah.extent[h] * aw.extent[w];
  return (ad.end[d] - ad.begin[d]) * (ah.end[h] - ah.begin[h]) * (aw.end[w] - aw.begin[w]);
}

PoolExtents pool_extents(const Tensor& input, const Tensor& output, size_t spatial) {
  const auto ndim = static_cast<size_t>(input.ndim());
  PoolExtents e{ndim == spatial + 2 ? input.sizes()[0] : 1, input.sizes()[ndim - spatial - 1], {1, 1, 1}, {1, 1, 1}};
  for (size_t i = 0; i < spatial; ++i) {
    e.in[3 - spatial + i] = input.sizes()[ndim - spatial + i];
    e.out[3 - spatial + i] = output.sizes()[ndim - spatial + i];
  }
  return e;
}

// Of [C, D, H, W] the second dimension is not a channel.
bool is_pool_last(const Tensor& t, size_t spatial) {
  return t.ndim() >= 4 && t.sizes().size() == spatial + 2 && t.is_channels_last() && !t.is_contiguous();
}
bool is_pool_last(const Tensor& input, const Tensor& output, size_t spatial) {
  return is_pool_last(input, spatial) && output.is_channels_last();
}

void run_pool(const PoolProblem& pool, const Tensor& input, Tensor& out, const Tensor& indices) {
  if (out.numel() == 0) return;
  if (out.device().kind == kCUDA) return run_pool_cuda(pool, input, out, indices);
  const bool is_last = is_pool_last(input, out, pool.spatial);
  const Tensor x = is_last ? input : input.contiguous();
  const Extents e = pool_extents(input, out, pool.spatial);
  int64_t* index = indices.defined() ? indices.data<int64_t>() : nullptr;
  dispatch_all(input.dtype(), "pool", [&]<class T>() {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      run_half<T>(pool, e, is_last, x, out, index);
    } else {
      run_typed<T>(pool, e, is_last, x.data<T>(), out.data<T>(), index);
    }
  });
}

void run_pool(const PoolProblem& pool, const PoolExtents& extents, bool is_last, const float* x, float* out) {
  run_typed<float>(pool, extents, is_last, x, out, nullptr);
}

}  // namespace tensord::kernels
