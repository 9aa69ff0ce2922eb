// Channel sums of the normalisations, for each instruction set.
#include "kernels/norm_channels.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm_channels_cpu.cpp"
#include "kernels/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kBlock = 2048;  // elements that are summed in T

template <class T>
T lane_sum(const T* x, int64_t count) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += x[i];
  return sum;
}

// Sums of (x - center)^2, or of g and g (x - center), over a lane; added to `out`.
template <class T>
void lane_squares(const T* x, T center, int64_t count, T* out) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += (x[i] - center) * (x[i] - center);
  *out += sum;
}
template <class T>
void lane_products(const T* x, const T* g, T center, int64_t count, T* sum_g, T* sum_gx) {
  T a = 0, b = 0;
#pragma omp simd reduction(+ : a, b)
  for (int64_t i = 0; i < count; ++i) {
    a += g[i];
    b += g[i] * (x[i] - center);
  }
  *sum_g += a;
  *sum_gx += b;
}

// A block of `planes` pieces of `count` elements.
template <class T>
ChannelSums sum_block(const T* x, const T* g, int64_t planes, int64_t step, int64_t count, const double* mean) {
  ChannelSums block;
  block.count = static_cast<double>(planes * count);
  T center, squares = 0;
  if (mean != nullptr) {
    block.mean = *mean;
    center = static_cast<T>(*mean);
  } else {
    T sum = 0;
    for (int64_t p = 0; p < planes; ++p) sum += lane_sum(x + p * step, count);
    block.mean = static_cast<double>(sum) / block.count;
    center = static_cast<T>(block.mean);
    for (int64_t p = 0; p < planes; ++p) lane_squares(x + p * step, center, count, &squares);
  }
  const double off = block.mean - static_cast<double>(center);
  block.squares = static_cast<double>(squares) - block.count * off * off;
  block.squares = block.squares < 0 ? 0 : block.squares;  // rounding; NaN stays
  if (g != nullptr) {
    T sum_g = 0, sum_gx = 0;
    for (int64_t p = 0; p < planes; ++p) lane_products(x + p * step, g + p * step, center, count, &sum_g, &sum_gx);
    block.sum_g = static_cast<double>(sum_g);
    block.sum_gx = static_cast<double>(sum_gx) - off * block.sum_g;
  }
  return block;
}

template <class T>
ChannelSums channel(const T* x, const T* g, int64_t planes, int64_t step, int64_t inner, const double* mean) {
  ChannelSums total;
  const int64_t at_once = std::max<int64_t>(1, kBlock / std::max<int64_t>(1, inner));
  for (int64_t p = 0; p < planes; p += at_once) {
    const int64_t count = std::min(at_once, planes - p);
    for (int64_t begin = 0; begin < inner; begin += kBlock) {
      const int64_t offset = p * step + begin;
      total.join(sum_block(x + offset, g ? g + offset : nullptr, count, step, std::min(kBlock, inner - begin), mean));
    }
  }
  return total;
}

// One vector of channels over some rows, joined to sums.
template <class D, class T>
HWY_INLINE void sum_columns(D d, const T* x, const T* g, int64_t rows, int64_t step, const double* means,
                            ChannelSums* sums) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto zero = hn::Zero(d);
  HWY_ALIGN T centers[HWY_MAX_BYTES / sizeof(T)], squares[HWY_MAX_BYTES / sizeof(T)], sum_g[HWY_MAX_BYTES / sizeof(T)],
      sum_gx[HWY_MAX_BYTES / sizeof(T)];
  if (means != nullptr) {
    for (int64_t i = 0; i < lanes; ++i) centers[i] = static_cast<T>(means[i]);
  } else {
    auto sum = zero;
    for (int64_t r = 0; r < rows; ++r) sum = hn::Add(sum, hn::LoadU(d, x + r * step));
    hn::StoreU(hn::Mul(sum, hn::Set(d, T(1) / static_cast<T>(rows))), d, centers);
  }
  const auto center = hn::LoadU(d, centers);
  auto s0 = zero, s1 = zero, s2 = zero, s3 = zero;
  if (g == nullptr) {
    for (int64_t r = 0; r < rows; ++r) {
      const auto v = hn::Sub(hn::LoadU(d, x + r * step), center);
      s0 = hn::MulAdd(v, v, s0);
      s3 = hn::Add(s3, v);
    }
  } else {
    for (int64_t r = 0; r < rows; ++r) {
      const auto v = hn::Sub(hn::LoadU(d, x + r * step), center), w = hn::LoadU(d, g + r * step);
      s0 = hn::MulAdd(v, v, s0);
      s1 = hn::Add(s1, w);
      s2 = hn::MulAdd(v, w, s2);
      s3 = hn::Add(s3, v);
    }
  }
  HWY_ALIGN T rest[HWY_MAX_BYTES / sizeof(T)];
  hn::StoreU(s0, d, squares);
  hn::StoreU(s1, d, sum_g);
  hn::StoreU(s2, d, sum_gx);
  hn::StoreU(s3, d, rest);
  for (int64_t i = 0; i < lanes; ++i) {
    ChannelSums block;
    block.count = static_cast<double>(rows);
    // What rounding left between the center and the mean.
    const double off = means != nullptr ? means[i] - static_cast<double>(centers[i])
                                        : static_cast<double>(rest[i]) / static_cast<double>(rows);
    block.mean = static_cast<double>(centers[i]) + off;
    block.squares = static_cast<double>(squares[i]) - block.count * off * off;
    block.squares = block.squares < 0 ? 0 : block.squares;
    block.sum_g = static_cast<double>(sum_g[i]);
    block.sum_gx = static_cast<double>(sum_gx[i]) - off * block.sum_g;
    sums[i].join(block);
  }
}

template <class T>
void channel_rows(const T* x, const T* g, int64_t rows, int64_t channels, const double* means, ChannelSums* sums) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t block = std::clamp<int64_t>(2 * kBlock / channels, 32, 1024);
  for (int64_t begin = 0; begin < rows; begin += block) {
    const int64_t count = std::min(block, rows - begin);
    const T* from = x + begin * channels;
    const T* from_g = g ? g + begin * channels : nullptr;
    int64_t c = 0;
    const auto run = [&](auto tag, int64_t width) HWY_ATTR {
      for (; c + width <= channels; c += width)
        sum_columns(tag, from + c, from_g ? from_g + c : nullptr, count, channels, means ? means + c : nullptr,
                    sums + c);
    };
    run(d, lanes);
    run(one, 1);
  }
}

template <class T>
void lane_backward(const T* g, const T* x, ChannelSlopes<T> s, T* dx, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) dx[i] = g[i] * s.scale + ((x[i] - s.center) * s.slope + s.shift);
}

template <class T>
void rows_backward(const T* g, const T* x, const T* slopes, T* dx, int64_t rows, int64_t channels) {
  const T *center = slopes, *scale = center + channels, *slope = scale + channels, *shift = slope + channels;
  for (int64_t r = 0; r < rows; ++r, g += channels, x += channels, dx += channels) {
#pragma GCC ivdep
    for (int64_t c = 0; c < channels; ++c) dx[c] = g[c] * scale[c] + ((x[c] - center[c]) * slope[c] + shift[c]);
  }
}

}  // namespace

ChannelSums channel_f32(const float* x, const float* g, int64_t planes, int64_t step, int64_t inner,
                        const double* mean) {
  return channel(x, g, planes, step, inner, mean);
}
ChannelSums channel_f64(const double* x, const double* g, int64_t planes, int64_t step, int64_t inner,
                        const double* mean) {
  return channel(x, g, planes, step, inner, mean);
}
void channel_rows_f32(const float* x, const float* g, int64_t rows, int64_t channels, const double* means,
                      ChannelSums* sums) {
  channel_rows(x, g, rows, channels, means, sums);
}
void channel_rows_f64(const double* x, const double* g, int64_t rows, int64_t channels, const double* means,
                      ChannelSums* sums) {
  channel_rows(x, g, rows, channels, means, sums);
}
void lane_backward_f32(const float* g, const float* x, ChannelSlopes<float> s, float* dx, int64_t count) {
  lane_backward(g, x, s, dx, count);
}
void lane_backward_f64(const double* g, const double* x, ChannelSlopes<double> s, double* dx, int64_t count) {
  lane_backward(g, x, s, dx, count);
}
void rows_backward_f32(const float* g, const float* x, const float* s, float* dx, int64_t rows, int64_t channels) {
  rows_backward(g, x, s, dx, rows, channels);
}
void rows_backward_f64(const double* g, const double* x, const double* s, double* dx, int64_t rows, int64_t channels) {
  rows_backward(g, x, s, dx, rows, channels);
}

}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {
HWY_EXPORT(channel_f32);
HWY_EXPORT(channel_f64);
HWY_EXPORT(channel_rows_f32);
HWY_EXPORT(channel_rows_f64);
HWY_EXPORT(lane_backward_f32);
HWY_EXPORT(lane_backward_f64);
HWY_EXPORT(rows_backward_f32);
HWY_EXPORT(rows_backward_f64);

void ChannelSums::join(const ChannelSums& other) {
  const double all = count + other.count;
  if (other.count == 0) return;
  const double middle = count == 0 ? other.mean : mean + (other.mean - mean) * (other.count / all);
  const double before = mean - middle, after = other.mean - middle;
  squares += other.squares + count * before * before + other.count * after * after;
  sum_gx += other.sum_gx + before * sum_g + after * other.sum_g;
  sum_g += other.sum_g;
  mean = middle;
  count = all;
}

ChannelSums sum_channel(const float* x, const float* g, int64_t planes, int64_t step, int64_t inner,
                        const double* mean) {
  return HWY_DYNAMIC_DISPATCH(channel_f32)(x, g, planes, step, inner, mean);
}
ChannelSums sum_channel(const double* x, const double* g, int64_t planes, int64_t step, int64_t inner,
                        const double* mean) {
  return HWY_DYNAMIC_DISPATCH(channel_f64)(x, g, planes, step, inner, mean);
}
void sum_channel_rows(const float* x, const float* g, int64_t rows, int64_t channels, const double* means,
                      ChannelSums* sums) {
  HWY_DYNAMIC_DISPATCH(channel_rows_f32)(x, g, rows, channels, means, sums);
}
void sum_channel_rows(const double* x, const double* g, int64_t rows, int64_t channels, const double* means,
                      ChannelSums* sums) {
  HWY_DYNAMIC_DISPATCH(channel_rows_f64)(x, g, rows, channels, means, sums);
}
void backward_lane(const float* g, const float* x, ChannelSlopes<float> slopes, float* dx, int64_t count) {
  HWY_DYNAMIC_DISPATCH(lane_backward_f32)(g, x, slopes, dx, count);
}
void backward_lane(const double* g, const double* x, ChannelSlopes<double> slopes, double* dx, int64_t count) {
  HWY_DYNAMIC_DISPATCH(lane_backward_f64)(g, x, slopes, dx, count);
}
void backward_rows(const float* g, const float* x, const float* slopes, float* dx, int64_t rows, int64_t channels) {
  HWY_DYNAMIC_DISPATCH(rows_backward_f32)(g, x, slopes, dx, rows, channels);
}
void backward_rows(const double* g, const double* x, const double* slopes, double* dx, int64_t rows, int64_t channels) {
  HWY_DYNAMIC_DISPATCH(rows_backward_f64)(g, x, slopes, dx, rows, channels);
}

}  // namespace tensord::kernels
#endif
