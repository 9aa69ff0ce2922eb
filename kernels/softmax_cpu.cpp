// One lane of softmax and log_softmax, for each instruction set. Three passes over a lane
// that stays in the cache: maximum, exponentials with their sum, scaling.
#include "kernels/softmax.h"

#include "kernels/pointwise_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax_cpu.cpp"
#include "kernels/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {

template <class T>
T lane_maximum(const T* in, int64_t count) {
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
  const T largest = lane_maximum(in, count);
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

void softmax_f32(const float* in, float* out, int64_t count, bool is_log) { softmax(in, out, count, is_log); }
void softmax_f64(const double* in, double* out, int64_t count, bool is_log) { softmax(in, out, count, is_log); }

}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {
HWY_EXPORT(softmax_f32);
HWY_EXPORT(softmax_f64);

void softmax_lane(const float* in, float* out, int64_t count, bool is_log) {
  HWY_DYNAMIC_DISPATCH(softmax_f32)(in, out, count, is_log);
}
void softmax_lane(const double* in, double* out, int64_t count, bool is_log) {
  HWY_DYNAMIC_DISPATCH(softmax_f64)(in, out, count, is_log);
}

}  // namespace tensord::kernels
#endif
