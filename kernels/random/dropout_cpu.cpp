// Loops of dropout, for each instruction set.
#include "kernels/random/dropout.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/random/dropout_cpu.cpp"
#include "kernels/base/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {

// `limit` is the probability in units of the 53 bits that become a number.
void draw_bits(const uint32_t* bits, int64_t limit, uint8_t* kept, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const int64_t high = bits[2 * i] & 0x1fffffu, low = bits[2 * i + 1];
    kept[i] = (high << 32 | low) < limit ? 1 : 0;
  }
}

template <class T>
void mask_elements(const T* x, const uint8_t* kept, T scale, T* out, int64_t count) {
#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) out[i] = x[i] * (kept[i] != 0 ? scale : T(0));
}
void mask_f32(const float* x, const uint8_t* kept, float scale, float* out, int64_t count) {
  mask_elements(x, kept, scale, out, count);
}
void mask_f64(const double* x, const uint8_t* kept, double scale, double* out, int64_t count) {
  mask_elements(x, kept, scale, out, count);
}

}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {

HWY_EXPORT(draw_bits);
HWY_EXPORT(mask_f32);
HWY_EXPORT(mask_f64);

void draw_below(const uint32_t* bits, double probability, uint8_t* kept, int64_t count) {
  const auto limit = static_cast<int64_t>(std::ceil(std::ldexp(probability, 53)));
  HWY_DYNAMIC_DISPATCH(draw_bits)(bits, limit, kept, count);
}
void apply_mask(const float* x, const uint8_t* kept, float scale, float* out, int64_t count) {
  HWY_DYNAMIC_DISPATCH(mask_f32)(x, kept, scale, out, count);
}
void apply_mask(const double* x, const uint8_t* kept, double scale, double* out, int64_t count) {
  HWY_DYNAMIC_DISPATCH(mask_f64)(x, kept, scale, out, count);
}

}  // namespace tensord::kernels
#endif
