// Lanes of the normalisations, for each instruction set.
#include "kernels/norm.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm_cpu.cpp"
#include "kernels/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {

// Sums of blocks in T are added in double, so the error does not grow with the length.
template <class T>
Moments moments(const T* in, int64_t count, double eps) {
  constexpr int64_t kBlock = 4096;
  double total = 0;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(count, begin + kBlock);
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = begin; i < end; ++i) sum += in[i];
    total += static_cast<double>(sum);
  }
  const double mean = total / static_cast<double>(count);
  const T center = static_cast<T>(mean);
  double squares = 0;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(count, begin + kBlock);
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = begin; i < end; ++i) sum += (in[i] - center) * (in[i] - center);
    squares += static_cast<double>(sum);
  }
  const double rounding = mean - static_cast<double>(center);
  const double variance = std::max(0.0, squares / static_cast<double>(count) - rounding * rounding);
  // max() drops NaN, which must reach the result.
  const double kept = squares != squares ? squares : variance;
  return {mean, 1.0 / std::sqrt(kept + eps)};
}

template <class T>
void normalize(const T* in, Moments m, const T* weight, const T* bias, T* out, int64_t count) {
  const T scale = static_cast<T>(m.rstd), shift = static_cast<T>(-m.mean * m.rstd);
  if (weight != nullptr && bias != nullptr) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) out[i] = (in[i] * scale + shift) * weight[i] + bias[i];
  } else if (weight != nullptr) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) out[i] = (in[i] * scale + shift) * weight[i];
  } else if (bias != nullptr) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) out[i] = in[i] * scale + shift + bias[i];
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) out[i] = in[i] * scale + shift;
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

Moments lane_moments(const float* in, int64_t count, double eps) {
  return HWY_DYNAMIC_DISPATCH(moments_f32)(in, count, eps);
}
Moments lane_moments(const double* in, int64_t count, double eps) {
  return HWY_DYNAMIC_DISPATCH(moments_f64)(in, count, eps);
}
void normalize_lane(const float* in, Moments m, const float* weight, const float* bias, float* out, int64_t count) {
  HWY_DYNAMIC_DISPATCH(normalize_f32)(in, m, weight, bias, out, count);
}
void normalize_lane(const double* in, Moments m, const double* weight, const double* bias, double* out, int64_t count) {
  HWY_DYNAMIC_DISPATCH(normalize_f64)(in, m, weight, bias, out, count);
}
void affine_lane(const float* in, double scale, double shift, float* out, int64_t count) {
  HWY_DYNAMIC_DISPATCH(affine_f32)(in, scale, shift, out, count);
}
void affine_lane(const double* in, double scale, double shift, double* out, int64_t count) {
  HWY_DYNAMIC_DISPATCH(affine_f64)(in, scale, shift, out, count);
}
void affine_rows(const float* in, const float* scale, const float* shift, float* out, int64_t rows, int64_t channels) {
  HWY_DYNAMIC_DISPATCH(affine_rows_f32)(in, scale, shift, out, rows, channels);
}

}  // namespace tensord::kernels
#endif
