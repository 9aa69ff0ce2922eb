// Sums and normalization of one row, for each instruction set.
#include "kernels/norm/norm.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm/norm_cpu.cpp"
#include "kernels/base/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The sum of x - center, or of its square. Four partial sums, since a single one would wait for its own result.
template <bool kSquare, class T>
T block_sum(const T* in, int64_t count, T center) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto c = hn::Set(d, center);
  const auto step = [&](auto sum, const T* from) {
    const auto x = hn::Sub(hn::LoadU(d, from), c);
    if constexpr (kSquare) {
      return hn::MulAdd(x, x, sum);
    } else {
      return hn::Add(sum, x);
    }
  };
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    s0 = step(s0, in + i);
    s1 = step(s1, in + i + lanes);
    s2 = step(s2, in + i + 2 * lanes);
    s3 = step(s3, in + i + 3 * lanes);
  }
  for (; i + lanes <= count; i += lanes) s0 = step(s0, in + i);
  T sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  for (; i < count; ++i) sum += kSquare ? (in[i] - center) * (in[i] - center) : in[i] - center;
  return sum;
}

// Blocks are summed in T and added in double, so the error does not grow with the length. The sums are around the first
// element: if all elements are equal, or nearly so, their mean is exact, and 1 / sqrt(eps) does not magnify its
// rounding.
template <class T>
Moments moments(const T* in, int64_t count, double eps) {
  constexpr int64_t kBlock = 4096;
  const auto sum_around = [&](T center) {
    double total = 0;
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      const int64_t end = std::min(count, begin + kBlock);
      total += static_cast<double>(block_sum<false>(in + begin, end - begin, center));
    }
    return total;
  };
  T first = count > 0 ? in[0] : T(0);
  double total = sum_around(first);
  if (!std::isfinite(total)) total = sum_around(first = T(0));
  const double mean = static_cast<double>(first) + total / static_cast<double>(count);
  const T center = static_cast<T>(mean);
  double squares = 0;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(count, begin + kBlock);
    squares += static_cast<double>(block_sum<true>(in + begin, end - begin, center));
  }
  const double rounding = mean - static_cast<double>(center);
  const double variance = std::max(0.0, squares / static_cast<double>(count) - rounding * rounding);
  // max() would drop a NaN, which must reach the result.
  const double kept = squares != squares ? squares : variance;
  return {mean, 1.0 / std::sqrt(kept + eps)};
}

template <class T>
void normalize(const T* in, Moments m, const T* weight, const T* bias, T* out, int64_t count) {
  const T scale = static_cast<T>(m.rstd), mean = static_cast<T>(m.mean);
  if (weight != nullptr && bias != nullptr) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) out[i] = (in[i] - mean) * scale * weight[i] + bias[i];
  } else if (weight != nullptr) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) out[i] = (in[i] - mean) * scale * weight[i];
  } else if (bias != nullptr) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) out[i] = (in[i] - mean) * scale + bias[i];
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) out[i] = (in[i] - mean) * scale;
  }
}

template <class T>
void affine(const T* in, double scale, double shift, T* out, int64_t count) {
  const T s = static_cast<T>(scale), t = static_cast<T>(shift);
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) out[i] = in[i] * s + t;
}

void affine_rows_f32(const float* in, const float* scale, const float* shift, float* out, int64_t rows,
                     int64_t channels) {
  for (int64_t r = 0; r < rows; ++r) {
#pragma GCC ivdep
    for (int64_t c = 0; c < channels; ++c) out[r * channels + c] = in[r * channels + c] * scale[c] + shift[c];
  }
}

Moments moments_f32(const float* in, int64_t count, double eps) { return moments(in, count, eps); }
Moments moments_f64(const double* in, int64_t count, double eps) { return moments(in, count, eps); }
void normalize_f32(const float* in, Moments m, const float* weight, const float* bias, float* out, int64_t count) {
  normalize(in, m, weight, bias, out, count);
}
void normalize_f64(const double* in, Moments m, const double* weight, const double* bias, double* out, int64_t count) {
  normalize(in, m, weight, bias, out, count);
}
void affine_f32(const float* in, double scale, double shift, float* out, int64_t count) {
  affine(in, scale, shift, out, count);
}
void affine_f64(const double* in, double scale, double shift, double* out, int64_t count) {
  affine(in, scale, shift, out, count);
}

}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {
HWY_EXPORT(moments_f32);
HWY_EXPORT(moments_f64);
HWY_EXPORT(normalize_f32);
HWY_EXPORT(normalize_f64);
HWY_EXPORT(affine_f32);
HWY_EXPORT(affine_f64);
HWY_EXPORT(affine_rows_f32);

Moments row_moments(const float* in, int64_t count, double eps) {
  return HWY_DYNAMIC_DISPATCH(moments_f32)(in, count, eps);
}
Moments row_moments(const double* in, int64_t count, double eps) {
  return HWY_DYNAMIC_DISPATCH(moments_f64)(in, count, eps);
}
void normalize_row(const float* in, Moments m, const float* weight, const float* bias, float* out, int64_t count) {
  HWY_DYNAMIC_DISPATCH(normalize_f32)(in, m, weight, bias, out, count);
}
void normalize_row(const double* in, Moments m, const double* weight, const double* bias, double* out, int64_t count) {
  HWY_DYNAMIC_DISPATCH(normalize_f64)(in, m, weight, bias, out, count);
}
void affine_row(const float* in, double scale, double shift, float* out, int64_t count) {
  HWY_DYNAMIC_DISPATCH(affine_f32)(in, scale, shift, out, count);
}
void affine_row(const double* in, double scale, double shift, double* out, int64_t count) {
  HWY_DYNAMIC_DISPATCH(affine_f64)(in, scale, shift, out, count);
}
void affine_rows(const float* in, const float* scale, const float* shift, float* out, int64_t rows, int64_t channels) {
  HWY_DYNAMIC_DISPATCH(affine_rows_f32)(in, scale, shift, out, rows, channels);
}

}  // namespace tensord::kernels
#endif
