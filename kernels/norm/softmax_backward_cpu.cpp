// The backward of softmax and log_softmax over one row or a block of columns, for each instruction set.
#include "kernels/base/math.h"
#include "kernels/norm/softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm/softmax_backward_cpu.cpp"
#include "kernels/base/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

template <class T>
void row(const T* g, const T* y, T* out, int64_t count, bool is_log) {
  T sum = 0;
  if (is_log) {
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; ++i) sum += g[i];
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) out[i] = g[i] - formula::exp(y[i]) * sum;
    return;
  }
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += g[i] * y[i];
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) out[i] = y[i] * (g[i] - sum);
}

// At most 256 columns.
template <class T>
void columns(const T* g, const T* y, T* out, int64_t rows, int64_t step, int64_t count, bool is_log) {
  T sums[256];
  for (int64_t i = 0; i < count; ++i) sums[i] = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const T *from = y + r * step, *incoming = g + r * step;
    if (is_log) {
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) sums[i] += incoming[i];
    } else {
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) sums[i] += incoming[i] * from[i];
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    const T *from = y + r * step, *incoming = g + r * step;
    T* to = out + r * step;
    if (is_log) {
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) to[i] = incoming[i] - formula::exp(from[i]) * sums[i];
    } else {
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) to[i] = from[i] * (incoming[i] - sums[i]);
    }
  }
}

}  // namespace

void row_f32(const float* g, const float* y, float* out, int64_t count, bool is_log) { row(g, y, out, count, is_log); }
void row_f64(const double* g, const double* y, double* out, int64_t count, bool is_log) {
  row(g, y, out, count, is_log);
}
void columns_f32(const float* g, const float* y, float* out, int64_t rows, int64_t step, int64_t count, bool is_log) {
  columns(g, y, out, rows, step, count, is_log);
}
void columns_f64(const double* g, const double* y, double* out, int64_t rows, int64_t step, int64_t count,
                 bool is_log) {
  columns(g, y, out, rows, step, count, is_log);
}

}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {
HWY_EXPORT(row_f32);
HWY_EXPORT(row_f64);
HWY_EXPORT(columns_f32);
HWY_EXPORT(columns_f64);

void softmax_backward_row(const float* g, const float* y, float* out, int64_t count, bool is_log) {
  HWY_DYNAMIC_DISPATCH(row_f32)(g, y, out, count, is_log);
}
void softmax_backward_row(const double* g, const double* y, double* out, int64_t count, bool is_log) {
  HWY_DYNAMIC_DISPATCH(row_f64)(g, y, out, count, is_log);
}
void softmax_backward_columns(const float* g, const float* y, float* out, int64_t rows, int64_t step, int64_t count,
                              bool is_log) {
  HWY_DYNAMIC_DISPATCH(columns_f32)(g, y, out, rows, step, count, is_log);
}
void softmax_backward_columns(const double* g, const double* y, double* out, int64_t rows, int64_t step, int64_t count,
                              bool is_log) {
  HWY_DYNAMIC_DISPATCH(columns_f64)(g, y, out, rows, step, count, is_log);
}

}  // namespace tensord::kernels
#endif
