// One row of softmax and log_softmax, for each instruction set. Three passes over a row
// that stays in the cache: maximum, exponentials with their sum, scaling.
#include "kernels/norm/softmax.h"

#include "kernels/base/math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm/softmax_cpu.cpp"
#include "kernels/base/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {

template <class T>
T row_maximum(const T* in, int64_t count) {
  T largest = -formula::kInfinity<T>;
  int has_nan = 0;
#pragma omp simd reduction(max : largest) reduction(| : has_nan)
  for (int64_t i = 0; i < count; ++i) {
    largest = in[i] > largest ? in[i] : largest;
    has_nan |= in[i] != in[i];
  }
  return has_nan ? formula::kNaN<T> : largest;
}

template <class T>
void softmax(const T* in, T* out, int64_t count, bool is_log) {
  const T largest = row_maximum(in, count);
  T sum = 0;
  if (is_log) {
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < count; ++i) sum += formula::exp(in[i] - largest);
    const T log_sum = formula::log(sum);
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) out[i] = (in[i] - largest) - log_sum;
    return;
  }
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) {
    const T e = formula::exp(in[i] - largest);
    out[i] = e;
    sum += e;
  }
  const T scale = T(1) / sum;
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) out[i] *= scale;
}

constexpr int64_t kColumns = 256;

// One block of columns.
void columns_block(const float* in, int64_t in_step, float* out, int64_t out_step, int64_t rows, int64_t count,
                   bool is_log) {
  float largest[kColumns], sums[kColumns];
  for (int64_t i = 0; i < count; ++i) {
    largest[i] = in[i];
    sums[i] = 0;
  }
  for (int64_t r = 1; r < rows; ++r) {
    const float* from = in + r * in_step;
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) {
      const float x = from[i], best = largest[i];
      const float larger = x > best ? x : best;
      largest[i] = x != x ? x : larger;  // keeps NaN, as nothing is larger
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = in + r * in_step;
    float* to = out + r * out_step;
    if (is_log) {
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) sums[i] += formula::exp(from[i] - largest[i]);
    } else {
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) {
        const float e = formula::exp(from[i] - largest[i]);
        to[i] = e;
        sums[i] += e;
      }
    }
  }
  for (int64_t i = 0; i < count; ++i) sums[i] = is_log ? formula::log(sums[i]) : 1.0f / sums[i];
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = in + r * in_step;
    float* to = out + r * out_step;
    if (is_log) {
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) to[i] = (from[i] - largest[i]) - sums[i];
    } else {
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) to[i] *= sums[i];
    }
  }
}

void columns_f32(const float* in, int64_t in_step, float* out, int64_t out_step, int64_t rows, int64_t count,
                 bool is_log) {
  for (int64_t begin = 0; begin < count; begin += kColumns) {
    const int64_t n = count - begin < kColumns ? count - begin : kColumns;
    columns_block(in + begin, in_step, out + begin, out_step, rows, n, is_log);
  }
}

void softmax_f32(const float* in, float* out, int64_t count, bool is_log) { softmax(in, out, count, is_log); }
void softmax_f64(const double* in, double* out, int64_t count, bool is_log) { softmax(in, out, count, is_log); }

}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {
HWY_EXPORT(softmax_f32);
HWY_EXPORT(softmax_f64);
HWY_EXPORT(columns_f32);

void softmax_row(const float* in, float* out, int64_t count, bool is_log) {
  HWY_DYNAMIC_DISPATCH(softmax_f32)(in, out, count, is_log);
}
void softmax_row(const double* in, double* out, int64_t count, bool is_log) {
  HWY_DYNAMIC_DISPATCH(softmax_f64)(in, out, count, is_log);
}

void softmax_columns(const float* in, int64_t in_step, float* out, int64_t out_step, int64_t rows, int64_t count,
                     bool is_log) {
  HWY_DYNAMIC_DISPATCH(columns_f32)(in, in_step, out, out_step, rows, count, is_log);
}

}  // namespace tensord::kernels
#endif
