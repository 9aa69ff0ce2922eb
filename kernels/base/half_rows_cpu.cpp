// Halves to float32 and back, compiled for each instruction set and chosen at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/base/half_rows_cpu.cpp"
#include "kernels/base/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/tensor/strided_copy.h"
#include "kernels/base/half_rows.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Words = hn::RebindToUnsigned<Floats>;
using Halves = hn::Rebind<uint16_t, Floats>;

template <class From, class To, class Step>
void Convert(const From* from, To* to, int64_t count, Step&& step) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Floats()));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) step(from + i, to + i);
  for (; i < count; ++i) to[i] = static_cast<To>(from[i]);
}

void WidenBFloat16(const BFloat16* from, float* to, int64_t count) {
  Convert(from, to, count, [](const BFloat16* at, float* out) HWY_ATTR {
    const auto bits = hn::LoadU(Halves(), reinterpret_cast<const uint16_t*>(at));
    hn::StoreU(hn::BitCast(Floats(), hn::ShiftLeft<16>(hn::PromoteTo(Words(), bits))), Floats(), out);
  });
}

void NarrowBFloat16(const float* from, BFloat16* to, int64_t count) {
  Convert(from, to, count, [](const float* at, BFloat16* out) HWY_ATTR {
    const Words d;
    const auto x = hn::LoadU(Floats(), at);
    const auto bits = hn::BitCast(d, x), upper = hn::ShiftRight<16>(bits);
    const auto odd = hn::And(upper, hn::Set(d, 1u));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7fffu))));
    const auto is_nan = hn::RebindMask(d, hn::Ne(x, x));
    const auto result = hn::IfThenElse(is_nan, hn::Or(upper, hn::Set(d, 0x40u)), rounded);
    const hn::RebindToSigned<Words> positive;
    hn::StoreU(hn::DemoteTo(Halves(), hn::BitCast(positive, result)), Halves(), reinterpret_cast<uint16_t*>(out));
  });
}

// Only F16C's conversions treat every number as IEEE does; Highway's own do not.
#if HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
using Float16s = hn::Rebind<hwy::float16_t, Floats>;

void WidenHalf(const Half* from, float* to, int64_t count) {
  Convert(from, to, count, [](const Half* at, float* out) HWY_ATTR {
    const auto halves = hn::LoadU(Float16s(), reinterpret_cast<const hwy::float16_t*>(at));
    hn::StoreU(hn::PromoteTo(Floats(), halves), Floats(), out);
  });
}

void NarrowHalf(const float* from, Half* to, int64_t count) {
  Convert(from, to, count, [](const float* at, Half* out) HWY_ATTR {
    const auto halves = hn::DemoteTo(Float16s(), hn::LoadU(Floats(), at));
    hn::StoreU(halves, Float16s(), reinterpret_cast<hwy::float16_t*>(out));
  });
}
#else
void WidenHalf(const Half* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}

void NarrowHalf(const float* from, Half* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}
#endif

}  // namespace
}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {

HWY_EXPORT(WidenBFloat16);
HWY_EXPORT(NarrowBFloat16);
HWY_EXPORT(WidenHalf);
HWY_EXPORT(NarrowHalf);

void widen_row(const Half* from, float* to, int64_t count) { HWY_DYNAMIC_DISPATCH(WidenHalf)(from, to, count); }
void widen_row(const BFloat16* from, float* to, int64_t count) { HWY_DYNAMIC_DISPATCH(WidenBFloat16)(from, to, count); }
void narrow_row(const float* from, Half* to, int64_t count) { HWY_DYNAMIC_DISPATCH(NarrowHalf)(from, to, count); }
void narrow_row(const float* from, BFloat16* to, int64_t count) {
  HWY_DYNAMIC_DISPATCH(NarrowBFloat16)(from, to, count);
}

namespace {
[[maybe_unused]] const bool is_given = [] {
  set_half_rows({widen_row, widen_row, narrow_row, narrow_row});
  return true;
}();
}  // namespace

}  // namespace tensord::kernels
#endif
