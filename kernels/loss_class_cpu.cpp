// Softmax of class scores as the cross entropy needs it, for each instruction set.
#include "kernels/loss_class.h"
#include "kernels/pointwise_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/loss_class_cpu.cpp"
#include "kernels/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

// One sample whose scores are neighbours.
template <class T>
void row_moments(const T* x, int64_t classes, T* largest, T* log_sum) {
  T best = -formula::kInfinity<T>;
  int has_nan = 0;
#pragma omp simd reduction(max : best) reduction(| : has_nan)
  for (int64_t c = 0; c < classes; ++c) {
    best = x[c] > best ? x[c] : best;
    has_nan |= x[c] != x[c];
  }
  if (has_nan) best = formula::kNaN<T>;
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t c = 0; c < classes; ++c) sum += formula::exp(x[c] - best);
  *largest = best;
  *log_sum = formula::log(sum);
}

// Samples that are neighbours.
template <class T>
void column_moments(const T* x, int64_t classes, int64_t step, int64_t count, T* largest, T* sums) {
  for (int64_t i = 0; i < count; ++i) {
    largest[i] = x[i];
    sums[i] = 0;
  }
  for (int64_t c = 1; c < classes; ++c) {
    const T* from = x + c * step;
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) {
      const T larger = from[i] > largest[i] ? from[i] : largest[i];
      largest[i] = from[i] != from[i] ? from[i] : larger;
    }
  }
  for (int64_t c = 0; c < classes; ++c) {
    const T* from = x + c * step;
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) sums[i] += formula::exp(from[i] - largest[i]);
  }
  for (int64_t i = 0; i < count; ++i) sums[i] = formula::log(sums[i]);
}

template <class T>
void moments(const T* x, int64_t classes, int64_t step, int64_t count, T* largest, T* log_sum) {
  if (step != 1) return column_moments(x, classes, step, count, largest, log_sum);
  for (int64_t i = 0; i < count; ++i) row_moments(x + i * classes, classes, largest + i, log_sum + i);
}

template <class T>
void row_slopes(const T* x, int64_t classes, T largest, T log_sum, T scale, T share, const T* weight, T* out) {
  if (share == 0) {
#pragma GCC ivdep
    for (int64_t c = 0; c < classes; ++c) out[c] = scale * formula::exp((x[c] - largest) - log_sum);
    return;
  }
#pragma GCC ivdep
  for (int64_t c = 0; c < classes; ++c) {
    out[c] = scale * formula::exp((x[c] - largest) - log_sum) - (weight != nullptr ? weight[c] * share : share);
  }
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
