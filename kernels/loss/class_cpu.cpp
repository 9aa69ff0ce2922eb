// Softmax of class scores as the cross entropy needs it, for each instruction set.
#include "kernels/base/math.h"
#include "kernels/loss/class.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/loss/class_cpu.cpp"
#include "kernels/base/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

// The scores after the last whole vector, padded with numbers that add nothing.
constexpr int64_t kTail = 16;
template <class T>
void load_tail(const T* x, int64_t count, T* tail) {
  for (int64_t i = 0; i < kTail; ++i) tail[i] = -formula::kInfinity<T>;
  for (int64_t i = 0; i < count; ++i) tail[i] = x[i];
}

// The maximum skips a NaN, which then makes the sum of exponentials NaN.
template <class T>
T largest_of(const T* x, int64_t count, T best) {
#pragma omp simd reduction(max : best)
  for (int64_t i = 0; i < count; ++i) best = x[i] > best ? x[i] : best;
  return best;
}
template <class T>
T sum_of_exp(const T* x, int64_t count, T largest) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += formula::exp(x[i] - largest);
  return sum;
}

// One sample with contiguous scores.
template <class T>
void row_moments(const T* x, int64_t classes, T* largest, T* sum_of_all) {
  T tail[kTail];
  const int64_t whole = classes / kTail * kTail;
  if (whole < classes) load_tail(x + whole, classes - whole, tail);
  T best = largest_of(x, whole, -formula::kInfinity<T>);
  if (whole < classes) best = largest_of(tail, kTail, best);
  T sum = sum_of_exp(x, whole, best);
  if (whole < classes) sum += sum_of_exp(tail, kTail, best);
  *largest = best;
  *sum_of_all = sum;
}

// Several contiguous samples.
template <class T>
void column_moments(const T* x, int64_t classes, int64_t step, int64_t count, T* largest, T* sums) {
  for (int64_t i = 0; i < count; ++i) {
    largest[i] = x[i];
    sums[i] = 0;
  }
  for (int64_t c = 1; c < classes; ++c) {
    const T* from = x + c * step;
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) largest[i] = from[i] > largest[i] ? from[i] : largest[i];
  }
  for (int64_t c = 0; c < classes; ++c) {
    const T* from = x + c * step;
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) sums[i] += formula::exp(from[i] - largest[i]);
  }
}

template <class T>
void moments(const T* x, int64_t classes, int64_t step, int64_t count, T* largest, T* log_sum) {
  if (step != 1) {
    column_moments(x, classes, step, count, largest, log_sum);
  } else {
    for (int64_t i = 0; i < count; ++i) row_moments(x + i * classes, classes, largest + i, log_sum + i);
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) log_sum[i] = formula::log(log_sum[i]);
}

// kHasShare: with label smoothing.
template <bool kHasShare, class T>
void dense_slopes(const T* x, int64_t count, T largest, T log_sum, T scale, T share, const T* weight, T* out) {
#pragma GCC ivdep
  for (int64_t c = 0; c < count; ++c) {
    const T p = formula::exp((x[c] - largest) - log_sum);
    if constexpr (kHasShare)
      out[c] = scale * p - (weight != nullptr ? weight[c] * share : share);
    else
      out[c] = scale * p;
  }
}
template <class T>
void row_slopes(const T* x, int64_t classes, T largest, T log_sum, T scale, T share, const T* weight, T* out) {
  if (share != 0) return dense_slopes<true>(x, classes, largest, log_sum, scale, share, weight, out);
  const int64_t whole = classes / kTail * kTail;
  dense_slopes<false>(x, whole, largest, log_sum, scale, share, weight, out);
  if (whole == classes) return;
  T tail[kTail];
  load_tail(x + whole, classes - whole, tail);
  dense_slopes<false>(tail, kTail, largest, log_sum, scale, share, weight, tail);
  for (int64_t c = whole; c < classes; ++c) out[c] = tail[c - whole];
}

template <class T>
void slopes(const T* x, int64_t classes, int64_t step, int64_t count, const T* largest, const T* log_sum,
            const T* scale, const T* share, const T* weight, T* out) {
  if (step == 1) {
    for (int64_t i = 0; i < count; ++i)
      row_slopes(x + i * classes, classes, largest[i], log_sum[i], scale[i], share[i], weight, out + i * classes);
    return;
  }
  for (int64_t c = 0; c < classes; ++c) {
    const T* from = x + c * step;
    T* to = out + c * step;
    const T w = weight != nullptr ? weight[c] : T(1);
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i)
      to[i] = scale[i] * formula::exp((from[i] - largest[i]) - log_sum[i]) - w * share[i];
  }
}

}  // namespace

void class_moments_f32(const float* x, int64_t classes, int64_t step, int64_t count, float* largest, float* log_sum) {
  moments(x, classes, step, count, largest, log_sum);
}
void class_moments_f64(const double* x, int64_t classes, int64_t step, int64_t count, double* largest,
                       double* log_sum) {
  moments(x, classes, step, count, largest, log_sum);
}
void class_slopes_f32(const float* x, int64_t classes, int64_t step, int64_t count, const float* largest,
                      const float* log_sum, const float* scale, const float* share, const float* weight, float* out) {
  slopes(x, classes, step, count, largest, log_sum, scale, share, weight, out);
}
void class_slopes_f64(const double* x, int64_t classes, int64_t step, int64_t count, const double* largest,
                      const double* log_sum, const double* scale, const double* share, const double* weight,
                      double* out) {
  slopes(x, classes, step, count, largest, log_sum, scale, share, weight, out);
}

}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {

HWY_EXPORT(class_moments_f32);
HWY_EXPORT(class_moments_f64);
HWY_EXPORT(class_slopes_f32);
HWY_EXPORT(class_slopes_f64);

void class_moments(const float* scores, int64_t classes, int64_t step, int64_t count, float* largest, float* log_sum) {
  HWY_DYNAMIC_DISPATCH(class_moments_f32)(scores, classes, step, count, largest, log_sum);
}
void class_moments(const double* scores, int64_t classes, int64_t step, int64_t count, double* largest,
                   double* log_sum) {
  HWY_DYNAMIC_DISPATCH(class_moments_f64)(scores, classes, step, count, largest, log_sum);
}
void class_slopes(const float* scores, int64_t classes, int64_t step, int64_t count, const float* largest,
                  const float* log_sum, const float* scale, const float* share, const float* weight, float* out) {
  HWY_DYNAMIC_DISPATCH(class_slopes_f32)
  (scores, classes, step, count, largest, log_sum, scale, share, weight, out);
}
void class_slopes(const double* scores, int64_t classes, int64_t step, int64_t count, const double* largest,
                  const double* log_sum, const double* scale, const double* share, const double* weight, double* out) {
  HWY_DYNAMIC_DISPATCH(class_slopes_f64)
  (scores, classes, step, count, largest, log_sum, scale, share, weight, out);
}

}  // namespace tensord::kernels
#endif
