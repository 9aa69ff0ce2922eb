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
using Vec = hn::Vec<Floats>;

#include "kernels/base/bfloat16-inl.h"
#include "kernels/base/bounds-inl.h"

float rounded(float x) { return static_cast<float>(static_cast<BFloat16>(x)); }
float clamped(float x, const HalfEpilogue& steps) {
  return x < steps.low ? steps.low : x > steps.high ? steps.high : x;
}

#include "kernels/base/bfloat16_epilogue-inl.h"

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

void FinishHalf(const FloatRows& from, const HalfEpilogue& steps, Half* to, int64_t stride) {
  const auto* const other = static_cast<const Half*>(steps.other);
  for (int64_t r = 0; r < from.rows; ++r) {
    FinishHalfRow(from.data + r * from.stride, steps, other != nullptr ? other + r * stride : nullptr, to + r * stride,
                  from.columns);
  }
}

}  // namespace
}  // namespace tensord::kernels::HWY_NAMESPACE

#if HWY_TARGET == HWY_AVX3
// Highway has no target for AVX-512 with only the instructions for bfloat16.
HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avx512bf16")
namespace tensord::kernels::HWY_NAMESPACE::native {
namespace {

#include "kernels/base/native_rounding-inl.h"

#include "kernels/base/bfloat16_epilogue-inl.h"

}  // namespace
}  // namespace tensord::kernels::HWY_NAMESPACE::native
HWY_POP_ATTRIBUTES
#endif

namespace tensord::kernels::HWY_NAMESPACE {
namespace {

void FinishBFloat16(const FloatRows& from, const HalfEpilogue& steps, BFloat16* to, int64_t stride) {
#if HWY_TARGET == HWY_AVX3
  if (__builtin_cpu_supports("avx512bf16"))
    return native::finish_bfloat16<native::NativeRounding>(from, steps, to, stride);
#endif
  finish_bfloat16<IntegerRounding>(from, steps, to, stride);
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
