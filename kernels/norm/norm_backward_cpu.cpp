// The backward of one row of a normalization, for each instruction set.
#include "kernels/norm/norm_backward.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm/norm_backward_cpu.cpp"
#include "kernels/base/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

// The sums of h and of h (x - mean), with h = g weight. Blocks are summed in T and added in double.
template <bool kHasWeight, class T>
void row_sums(const T* g, const T* x, const T* weight, T mean, int64_t count, double* sum_h, double* sum_hx) {
  constexpr int64_t kBlock = 2048;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = begin + kBlock < count ? begin + kBlock : count;
    T a = 0, b = 0;
#pragma omp simd reduction(+ : a, b)
    for (int64_t i = begin; i < end; ++i) {
      const T h = kHasWeight ? g[i] * weight[i] : g[i];
      a += h;
      b += h * (x[i] - mean);
    }
    *sum_h += static_cast<double>(a);
    *sum_hx += static_cast<double>(b);
  }
}

template <bool kHasWeight, bool kHasSums, class T>
void row_apply(const T* g, const T* x, const T* weight, T mean, T rstd, T slope, T shift, T* dx, T* dweight, T* dbias,
               int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const T h = kHasWeight ? g[i] * weight[i] : g[i], centered = x[i] - mean;
    dx[i] = h * rstd + (centered * slope + shift);
    if constexpr (kHasSums) {
      dweight[i] += g[i] * (centered * rstd);
      dbias[i] += g[i];
    }
  }
}

template <bool kHasWeight, class T>
void row(const T* g, const T* x, const T* weight, Moments m, T* dx, T* dweight, T* dbias, int64_t count) {
  const T mean = static_cast<T>(m.mean), rstd = static_cast<T>(m.rstd);
  if (dx != nullptr) {
    double sum_h = 0, sum_hx = 0;
    row_sums<kHasWeight>(g, x, weight, mean, count, &sum_h, &sum_hx);
    const double n = static_cast<double>(count);
    const T slope = static_cast<T>(-m.rstd * m.rstd * m.rstd * sum_hx / n), shift = static_cast<T>(-m.rstd * sum_h / n);
    if (dweight != nullptr && dbias != nullptr)
      return row_apply<kHasWeight, true>(g, x, weight, mean, rstd, slope, shift, dx, dweight, dbias, count);
    row_apply<kHasWeight, false>(g, x, weight, mean, rstd, slope, shift, dx, dweight, dbias, count);
  }
  if (dweight != nullptr) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) dweight[i] += g[i] * ((x[i] - mean) * rstd);
  }
  if (dbias != nullptr) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) dbias[i] += g[i];
  }
}

}  // namespace

void row_f32(const float* g, const float* x, const float* weight, Moments m, float* dx, float* dweight, float* dbias,
             int64_t count) {
  weight != nullptr ? row<true>(g, x, weight, m, dx, dweight, dbias, count)
                    : row<false>(g, x, weight, m, dx, dweight, dbias, count);
}
void row_f64(const double* g, const double* x, const double* weight, Moments m, double* dx, double* dweight,
             double* dbias, int64_t count) {
  weight != nullptr ? row<true>(g, x, weight, m, dx, dweight, dbias, count)
                    : row<false>(g, x, weight, m, dx, dweight, dbias, count);
}

}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {
HWY_EXPORT(row_f32);
HWY_EXPORT(row_f64);

void normalize_row_backward(const float* g, const float* x, const float* weight, Moments moments, float* dx,
                            float* dweight, float* dbias, int64_t count) {
  HWY_DYNAMIC_DISPATCH(row_f32)(g, x, weight, moments, dx, dweight, dbias, count);
}
void normalize_row_backward(const double* g, const double* x, const double* weight, Moments moments, double* dx,
                            double* dweight, double* dbias, int64_t count) {
  HWY_DYNAMIC_DISPATCH(row_f64)(g, x, weight, moments, dx, dweight, dbias, count);
}

}  // namespace tensord::kernels
#endif
