// Results of packed operators into halves, with the steps that follow; compiled for each instruction set and chosen at
// run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/common/half_finish_cpu.cpp"
#include "kernels/common/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "kernels/common/half_finish.h"
#include "kernels/common/half_rows.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Words = hn::RebindToUnsigned<Floats>;
using Vec = hn::Vec<Floats>;

constexpr int64_t kBlock = 512;  // stays in the first cache

// As halves are rounded, to the nearest, ties to even; NaN stays NaN.
struct RoundBFloat16 {
  HWY_INLINE Vec operator()(Vec x) const {
    const Words d;
    const auto bits = hn::BitCast(d, x);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1u));
    const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7fffu)));
    const auto nan = hn::Or(bits, hn::Set(d, 0x400000u));
    const auto result = hn::IfThenElse(hn::RebindMask(d, hn::Ne(x, x)), nan, rounded);
    return hn::BitCast(Floats(), hn::And(result, hn::Set(d, 0xffff0000u)));
  }
  HWY_INLINE float operator()(float x) const { return static_cast<float>(static_cast<BFloat16>(x)); }
};
struct KeepFloats {
  HWY_INLINE Vec operator()(Vec x) const { return x; }
  HWY_INLINE float operator()(float x) const { return x; }
};

// The steps on a block of float32, in place.
template <class Round>
HWY_INLINE void Steps(float* x, const HalfFinish& finish, const float* other, int64_t count, Round round) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const bool has_affine = finish.scale != nullptr, has_row = finish.has_row_of_scales;
  const Vec one_scale = hn::Set(d, has_affine ? *finish.scale : 0.0f);
  const Vec one_shift = hn::Set(d, has_affine ? *finish.shift : 0.0f);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    Vec v = round(hn::LoadU(d, x + i));
    if (has_affine) {
      const Vec scale = has_row ? hn::LoadU(d, finish.scale + i) : one_scale;
      const Vec shift = has_row ? hn::LoadU(d, finish.shift + i) : one_shift;
      v = round(hn::Add(hn::Mul(v, scale), shift));
    }
    if (other != nullptr) v = round(hn::Add(v, hn::LoadU(d, other + i)));
    if (finish.has_relu) v = hn::IfThenZeroElse(hn::Lt(v, hn::Zero(d)), v);
    hn::StoreU(v, d, x + i);
  }
  for (; i < count; ++i) {
    float v = round(x[i]);
    if (has_affine) v = round(v * finish.scale[has_row ? i : 0] + finish.shift[has_row ? i : 0]);
    if (other != nullptr) v = round(v + other[i]);
    x[i] = finish.has_relu && v < 0 ? 0 : v;
  }
}

void BlockOf(float* x, const HalfFinish& finish, const float* other, BFloat16* to, int64_t count) {
  Steps(x, finish, other, count, RoundBFloat16());
  narrow_row(x, to, count);
}

// Where halves are rounded by rows alone, each step is a pass.
void BlockOf(float* x, const HalfFinish& finish, const float* other, Half* to, int64_t count) {
  const auto round = [&] {
    narrow_row(x, to, count);
    widen_row(to, x, count);
  };
  round();
  if (finish.scale != nullptr) {
    Steps(x, {finish.scale, finish.shift, finish.has_row_of_scales}, nullptr, count, KeepFloats());
    round();
  }
  Steps(x, {.has_relu = finish.has_relu}, other, count, KeepFloats());  // rounding leaves signs as they are
  narrow_row(x, to, count);
}

template <class T>
void FinishRow(const float* from, const HalfFinish& finish, T* to, int64_t count) {
  float x[kBlock], wide[kBlock];
  HalfFinish block = finish;
  for (int64_t at = 0; at < count; at += kBlock) {
    const int64_t size = std::min(kBlock, count - at);
    std::memcpy(x, from + at, static_cast<size_t>(size) * sizeof(float));
    if (finish.other != nullptr) widen_row(static_cast<const T*>(finish.other) + at, wide, size);
    if (finish.has_row_of_scales) {
      block.scale = finish.scale + at;
      block.shift = finish.shift + at;
    }
    BlockOf(x, block, finish.other != nullptr ? wide : nullptr, to + at, size);
  }
}

void FinishBFloat16(const float* from, const HalfFinish& finish, BFloat16* to, int64_t count) {
  FinishRow(from, finish, to, count);
}
void FinishHalf(const float* from, const HalfFinish& finish, Half* to, int64_t count) {
  FinishRow(from, finish, to, count);
}

}  // namespace
}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {

HWY_EXPORT(FinishBFloat16);
HWY_EXPORT(FinishHalf);

void finish_row(const float* from, const HalfFinish& finish, Half* to, int64_t count) {
  HWY_DYNAMIC_DISPATCH(FinishHalf)(from, finish, to, count);
}
void finish_row(const float* from, const HalfFinish& finish, BFloat16* to, int64_t count) {
  HWY_DYNAMIC_DISPATCH(FinishBFloat16)(from, finish, to, count);
}

}  // namespace tensord::kernels
#endif
