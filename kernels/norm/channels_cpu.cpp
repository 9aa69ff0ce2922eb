// Channel sums of the normalizations, for each instruction set.
#include "kernels/norm/channels.h"

#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm/channels_cpu.cpp"
#include "kernels/base/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kBlock = 2048;  // elements that are summed in T before they are added in double

template <class T>
T row_sum(const T* x, int64_t count) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += x[i];
  return sum;
}

// Adds to `out` the sums of (x - center)^2, or of g and g (x - center), over a row.
template <class T>
void row_squares(const T* x, T center, int64_t count, T* out) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += (x[i] - center) * (x[i] - center);
  *out += sum;
}
template <class T>
void row_products(const T* x, const T* g, T center, int64_t count, T* sum_g, T* sum_gx) {
  T a = 0, b = 0;
#pragma omp simd reduction(+ : a, b)
  for (int64_t i = 0; i < count; ++i) {
    a += g[i];
    b += g[i] * (x[i] - center);
  }
  *sum_g += a;
  *sum_gx += b;
}

// A block of `planes` parts of `count` elements each.
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
    for (int64_t p = 0; p < planes; ++p) sum += row_sum(x + p * step, count);
    block.mean = static_cast<double>(sum) / block.count;
    center = static_cast<T>(block.mean);
    for (int64_t p = 0; p < planes; ++p) row_squares(x + p * step, center, count, &squares);
  }
  const double off = block.mean - static_cast<double>(center);
  block.squares = static_cast<double>(squares) - block.count * off * off;
  block.squares = block.squares < 0 ? 0 : block.squares;  // rounding; NaN stays
  if (g != nullptr) {
    T sum_g = 0, sum_gx = 0;
    for (int64_t p = 0; p < planes; ++p) row_products(x + p * step, g + p * step, center, count, &sum_g, &sum_gx);
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

// The sums of v = x - center over a block of rows.
template <class T>
struct ColumnSums {
  static constexpr int64_t kMax = 4 * HWY_MAX_BYTES / sizeof(T);  // channels
  T center[kMax], rest[kMax], squares[kMax], sum_g[kMax], sum_gx[kMax];
};

// Adds to `sums` those of kVectors vectors of channels, over rows few enough to be summed in T.
template <bool kHasG, int kVectors, class D, class T>
HWY_INLINE void sum_columns(D d, const T* x, const T* g, int64_t rows, int64_t step, ColumnSums<T>* sums) {
  using V = hn::Vec<D>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V center[kVectors], rest[kVectors], squares[kVectors], sum_g[kVectors], sum_gx[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    center[v] = hn::LoadU(d, sums->center + v * lanes);
    rest[v] = squares[v] = sum_g[v] = sum_gx[v] = hn::Zero(d);
  }
  for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const V off = hn::Sub(hn::LoadU(d, x + r * step + v * lanes), center[v]);
      rest[v] = hn::Add(rest[v], off);
      squares[v] = hn::MulAdd(off, off, squares[v]);
      if constexpr (kHasG) {
        const V incoming = hn::LoadU(d, g + r * step + v * lanes);
        sum_g[v] = hn::Add(sum_g[v], incoming);
        sum_gx[v] = hn::MulAdd(off, incoming, sum_gx[v]);
      }
    }
  }
  const auto add = [&](V sum, T* to) HWY_ATTR { hn::StoreU(hn::Add(hn::LoadU(d, to), sum), d, to); };
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    add(rest[v], sums->rest + v * lanes);
    add(squares[v], sums->squares + v * lanes);
    if constexpr (kHasG) {
      add(sum_g[v], sums->sum_g + v * lanes);
      add(sum_gx[v], sums->sum_gx + v * lanes);
    }
  }
}

template <class T>
void join_columns(const ColumnSums<T>& from, const double* means, int64_t rows, int64_t count, ChannelSums* sums) {
  for (int64_t i = 0; i < count; ++i) {
    ChannelSums block;
    block.count = static_cast<double>(rows);
    const double center = static_cast<double>(from.center[i]), rest = static_cast<double>(from.rest[i]);
    const double off = means != nullptr ? means[i] - center : rest / block.count;
    block.mean = center + off;
    block.squares = static_cast<double>(from.squares[i]) - block.count * off * off;
    block.squares = block.squares < 0 ? 0 : block.squares;  // rounding; NaN stays
    block.sum_g = static_cast<double>(from.sum_g[i]);
    block.sum_gx = static_cast<double>(from.sum_gx[i]) - off * block.sum_g;
    sums[i].join(block);
  }
}

// Sums the channels of a block around the mean before it, or around their first element. When a block lies far from
// that center it also lies far from the rest, and then the variance between blocks is as large as what rounding loses.
template <int kVectors, class D, class T>
HWY_INLINE void sum_block_columns(D d, const T* x, const T* g, int64_t rows, int64_t step, const double* means,
                                  ChannelSums* sums) {
  constexpr int64_t kExact = 64;  // rows that are summed together
  const int64_t count = kVectors * static_cast<int64_t>(hn::Lanes(d));
  ColumnSums<T> block;
  for (int64_t i = 0; i < count; ++i) {
    block.center[i] = means != nullptr    ? static_cast<T>(means[i])
                      : sums[i].count > 0 ? static_cast<T>(sums[i].mean)
                                          : x[i];
    block.rest[i] = block.squares[i] = block.sum_g[i] = block.sum_gx[i] = 0;
  }
  for (int64_t r = 0; r < rows; r += kExact) {
    const int64_t now = std::min(kExact, rows - r), offset = r * step;
    if (g != nullptr)
      sum_columns<true, kVectors>(d, x + offset, g + offset, now, step, &block);
    else
      sum_columns<false, kVectors>(d, x + offset, g, now, step, &block);
  }
  join_columns(block, means, rows, count, sums);
}

template <class T>
void channel_rows(const T* x, const T* g, int64_t rows, int64_t channels, const double* means, ChannelSums* sums) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int64_t kRows = 1024;
  for (int64_t begin = 0; begin < rows; begin += kRows) {
    const int64_t count = std::min(kRows, rows - begin);
    int64_t c = 0;
    const auto run = [&](auto tag, auto vectors, int64_t width) HWY_ATTR {
      for (; c + width <= channels; c += width) {
        const int64_t offset = begin * channels + c;
        sum_block_columns<decltype(vectors)::value>(tag, x + offset, g ? g + offset : nullptr, count, channels,
                                                    means ? means + c : nullptr, sums + c);
      }
    };
    run(d, std::integral_constant<int, 4>(), 4 * lanes);
    run(d, std::integral_constant<int, 1>(), lanes);
    run(one, std::integral_constant<int, 1>(), 1);
  }
}

template <class T>
void row_backward(const T* g, const T* x, ChannelSlopes<T> s, T* dx, int64_t count) {
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
void row_backward_f32(const float* g, const float* x, ChannelSlopes<float> s, float* dx, int64_t count) {
  row_backward(g, x, s, dx, count);
}
void row_backward_f64(const double* g, const double* x, ChannelSlopes<double> s, double* dx, int64_t count) {
  row_backward(g, x, s, dx, count);
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
HWY_EXPORT(row_backward_f32);
HWY_EXPORT(row_backward_f64);
HWY_EXPORT(rows_backward_f32);
HWY_EXPORT(rows_backward_f64);

void ChannelSums::join(const ChannelSums& other) {
  if (other.count == 0) return;
  if (count == 0) {
    *this = other;
    return;
  }
  const double all = count + other.count, middle = mean + (other.mean - mean) * (other.count / all);
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
void backward_row(const float* g, const float* x, ChannelSlopes<float> slopes, float* dx, int64_t count) {
  HWY_DYNAMIC_DISPATCH(row_backward_f32)(g, x, slopes, dx, count);
}
void backward_row(const double* g, const double* x, ChannelSlopes<double> slopes, double* dx, int64_t count) {
  HWY_DYNAMIC_DISPATCH(row_backward_f64)(g, x, slopes, dx, count);
}
void backward_rows(const float* g, const float* x, const float* slopes, float* dx, int64_t rows, int64_t channels) {
  HWY_DYNAMIC_DISPATCH(rows_backward_f32)(g, x, slopes, dx, rows, channels);
}
void backward_rows(const double* g, const double* x, const double* slopes, double* dx, int64_t rows, int64_t channels) {
  HWY_DYNAMIC_DISPATCH(rows_backward_f64)(g, x, slopes, dx, rows, channels);
}

}  // namespace tensord::kernels
#endif
