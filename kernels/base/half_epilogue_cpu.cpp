// Stores results of packed operators as halves after the steps that follow; compiled for each instruction set and
// chosen at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/base/half_epilogue_cpu.cpp"
#include "kernels/base/simd_targets.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/base/half_epilogue.h"
#include "kernels/base/half_rows.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Words = hn::RebindToUnsigned<Floats>;
using Vec = hn::Vec<Floats>;

using Halves = hn::Rebind<uint16_t, Floats>;

// Rounds to nearest, ties to even; NaN stays NaN.
HWY_INLINE Vec rounded(Vec x) {
  const Words d;
  const auto bits = hn::BitCast(d, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1u));
  const auto nearest = hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7fffu)));
  const auto nan = hn::Or(bits, hn::Set(d, 0x400000u));
  const auto result = hn::IfThenElse(hn::RebindMask(d, hn::Ne(x, x)), nan, nearest);
  return hn::BitCast(Floats(), hn::And(result, hn::Set(d, 0xffff0000u)));
}
HWY_INLINE Vec load_wide(const BFloat16* at) {
  const auto bits = hn::LoadU(Halves(), reinterpret_cast<const uint16_t*>(at));
  return hn::BitCast(Floats(), hn::ShiftLeft<16>(hn::PromoteTo(Words(), bits)));
}
HWY_INLINE void store_rounded(Vec x, BFloat16* to) {
  const hn::RebindToSigned<Words> d;
  const auto upper = hn::ShiftRight<16>(hn::BitCast(Words(), x));
  hn::StoreU(hn::DemoteTo(Halves(), hn::BitCast(d, upper)), Halves(), reinterpret_cast<uint16_t*>(to));
}
float rounded(float x) { return static_cast<float>(static_cast<BFloat16>(x)); }
float clamped(float x, const HalfEpilogue& steps) {
  return x < steps.low ? steps.low : x > steps.high ? steps.high : x;
}

// A step of scale and shift: absent, one pair for all elements, or one pair for each.
enum class Affine : uint8_t { kNone, kOne, kRow };

template <Affine affine, bool has_other>
void RunRow(const float* from, const HalfEpilogue& steps, const BFloat16* other, BFloat16* to, int64_t count) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr bool is_row = affine == Affine::kRow;
  const Vec low = rounded(hn::Set(d, steps.low)), high = rounded(hn::Set(d, steps.high));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    Vec v = rounded(hn::LoadU(d, from + i));
    if constexpr (affine != Affine::kNone) {
      const Vec scale = is_row ? hn::LoadU(d, steps.scale + i) : hn::Set(d, *steps.scale);
      const Vec shift = is_row ? hn::LoadU(d, steps.shift + i) : hn::Set(d, *steps.shift);
      v = rounded(hn::Add(hn::Mul(v, scale), shift));
    }
    if constexpr (has_other) v = rounded(hn::Add(v, load_wide(other + i)));
    v = hn::IfThenElse(hn::Lt(v, low), low, v);
    store_rounded(hn::IfThenElse(hn::Gt(v, high), high, v), to + i);
  }
  for (; i < count; ++i) {
    float v = rounded(from[i]);
    if constexpr (affine != Affine::kNone) v = rounded(v * steps.scale[is_row ? i : 0] + steps.shift[is_row ? i : 0]);
    if constexpr (has_other) v = rounded(v + static_cast<float>(other[i]));
    to[i] = static_cast<BFloat16>(clamped(v, steps));
  }
}

// float16: as each operator rounds its result, each step is a pass over a block that stays in the L1 cache.
constexpr int64_t kBlock = 512;

// In float32. Steps that are null are left out.
void Steps(float* x, const HalfEpilogue& steps, const float* other, int64_t count) {
  const Floats d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const bool is_row = steps.has_row_of_scales;
  const Vec low = hn::Set(d, steps.low), high = hn::Set(d, steps.high);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    Vec v = hn::LoadU(d, x + i);
    if (steps.scale != nullptr) {
      const Vec scale = is_row ? hn::LoadU(d, steps.scale + i) : hn::Set(d, *steps.scale);
      const Vec shift = is_row ? hn::LoadU(d, steps.shift + i) : hn::Set(d, *steps.shift);
      v = hn::Add(hn::Mul(v, scale), shift);
    }
    if (other != nullptr) v = hn::Add(v, hn::LoadU(d, other + i));
    v = hn::IfThenElse(hn::Lt(v, low), low, v);
    hn::StoreU(hn::IfThenElse(hn::Gt(v, high), high, v), d, x + i);
  }
  for (; i < count; ++i) {
    float v = x[i];
    if (steps.scale != nullptr) v = v * steps.scale[is_row ? i : 0] + steps.shift[is_row ? i : 0];
    if (other != nullptr) v += other[i];
    x[i] = clamped(v, steps);
  }
}

void RunBlock(float* x, const HalfEpilogue& steps, const float* other, Half* to, int64_t count) {
  narrow_row(x, to, count);
  widen_row(to, x, count);
  if (steps.scale != nullptr) {
    Steps(x, {.scale = steps.scale, .shift = steps.shift, .has_row_of_scales = steps.has_row_of_scales}, nullptr,
          count);
    narrow_row(x, to, count);
    widen_row(to, x, count);
  }
  // Rounds the sum before applying the bounds, which may not be halves themselves.
  if (other != nullptr) {
    Steps(x, {}, other, count);
    narrow_row(x, to, count);
    widen_row(to, x, count);
  }
  Steps(x, {.low = steps.low, .high = steps.high}, nullptr, count);
  narrow_row(x, to, count);
}

void FinishHalfRow(const float* from, const HalfEpilogue& steps, const Half* other, Half* to, int64_t count) {
  float x[kBlock], wide[kBlock];
  HalfEpilogue block = steps;
  for (int64_t at = 0; at < count; at += kBlock) {
    const int64_t size = std::min(kBlock, count - at);
    std::memcpy(x, from + at, static_cast<size_t>(size) * sizeof(float));
    if (other != nullptr) widen_row(other + at, wide, size);
    if (steps.has_row_of_scales) {
      block.scale = steps.scale + at;
      block.shift = steps.shift + at;
    }
    RunBlock(x, block, other != nullptr ? wide : nullptr, to + at, size);
  }
}

void FinishBFloat16(const FloatRows& from, const HalfEpilogue& steps, BFloat16* to, int64_t stride) {
  const auto choose = [&](auto affine) {
    constexpr Affine kAffine = affine;
    return steps.other != nullptr ? &RunRow<kAffine, true> : &RunRow<kAffine, false>;
  };
  const auto run = steps.scale == nullptr    ? choose(std::integral_constant<Affine, Affine::kNone>())
                   : steps.has_row_of_scales ? choose(std::integral_constant<Affine, Affine::kRow>())
                                             : choose(std::integral_constant<Affine, Affine::kOne>());
  const auto* const other = static_cast<const BFloat16*>(steps.other);
  for (int64_t r = 0; r < from.rows; ++r) {
    run(from.data + r * from.stride, steps, other != nullptr ? other + r * stride : nullptr, to + r * stride,
        from.columns);
  }
}
void FinishHalf(const FloatRows& from, const HalfEpilogue& steps, Half* to, int64_t stride) {
  const auto* const other = static_cast<const Half*>(steps.other);
  for (int64_t r = 0; r < from.rows; ++r) {
    FinishHalfRow(from.data + r * from.stride, steps, other != nullptr ? other + r * stride : nullptr, to + r * stride,
                  from.columns);
  }
}

}  // namespace
}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {

HWY_EXPORT(FinishBFloat16);
HWY_EXPORT(FinishHalf);

void finish_rows(const FloatRows& from, const HalfEpilogue& steps, Half* to, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(FinishHalf)(from, steps, to, stride);
}
void finish_rows(const FloatRows& from, const HalfEpilogue& steps, BFloat16* to, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(FinishBFloat16)(from, steps, to, stride);
}

}  // namespace tensord::kernels
#endif
