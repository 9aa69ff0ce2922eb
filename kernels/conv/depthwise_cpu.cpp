// Depthwise convolution: a few neighboring pixels of a row at once, one vector of channels at a time. Each input
// element is read once for each kernel row.
#include "kernels/base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/depthwise_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/conv/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

#include "kernels/conv/epilogue-inl.h"

#include "kernels/base/bfloat16-inl.h"

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int kRowPixels = 7;
#else
constexpr int kRowPixels = 4;
#endif

// Results in float32.
struct FloatPixels {
  using T = float;
  const DepthwiseConv& conv;

  static HWY_INLINE V load(const T* at) { return hn::LoadU(D(), at); }
  template <int kPixels>
  HWY_INLINE void store(V (&sums)[kPixels], int64_t c, T* to) const {
    const V low = hn::Set(D(), conv.finish.low), high = hn::Set(D(), conv.finish.high);
#pragma GCC unroll 8
    for (int t = 0; t < kPixels; ++t) hn::StoreU(clamp_of(sums[t], low, high), D(), to + t * conv.channels + c);
  }
  void finish(T* to, int64_t count) const {
    if (conv.finish.count > 0) finish_block(conv.finish, to, 1, 0, count);
  }
};

#include "kernels/conv/depthwise_tile-inl.h"

int64_t LeastChannels() { return kLanes; }

void RunDepthwise(const DepthwiseConv& conv, const float* src, float* dst, int64_t first_row, int64_t last_row) {
  run_all(FloatPixels{conv}, src, dst, {first_row, last_row});
}

}  // namespace
}  // namespace tensord::kernels::HWY_NAMESPACE

#if HWY_TARGET == HWY_AVX3
// Highway has no target for AVX-512 with only the instructions for bfloat16.
HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR ",avx512bf16")
namespace tensord::kernels::HWY_NAMESPACE::native {
namespace {

#include "kernels/base/native_rounding-inl.h"

#include "kernels/conv/depthwise_tile-inl.h"

}  // namespace
}  // namespace tensord::kernels::HWY_NAMESPACE::native
HWY_POP_ATTRIBUTES
#endif

namespace tensord::kernels::HWY_NAMESPACE {
namespace {

void RunDepthwiseHalves(const DepthwiseConv& conv, const HalfEpilogue& steps, const BFloat16* src, BFloat16* dst,
                        std::array<int64_t, 2> rows) {
#if HWY_TARGET == HWY_AVX3
  if (__builtin_cpu_supports("avx512bf16"))
    return native::run_all(native::HalfPixels<native::NativeRounding>{conv, steps}, src, dst, rows);
#endif
  run_all(HalfPixels<IntegerRounding>{conv, steps}, src, dst, rows);
}

}  // namespace
}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {

HWY_EXPORT(LeastChannels);
HWY_EXPORT(RunDepthwise);
HWY_EXPORT(RunDepthwiseHalves);

bool covers_depthwise(int64_t kernel, int64_t stride, int64_t channels) {
  const bool is_known = ((kernel == 3 || kernel == 5) && (stride == 1 || stride == 2)) || (kernel == 7 && stride == 1);
  return is_known && channels >= HWY_DYNAMIC_DISPATCH(LeastChannels)();
}

void run_depthwise_conv(const DepthwiseConv& conv, const float* src, float* dst, int64_t first_row, int64_t last_row) {
  HWY_DYNAMIC_DISPATCH(RunDepthwise)(conv, src, dst, first_row, last_row);
}

void run_depthwise_halves(const DepthwiseConv& conv, const HalfEpilogue& steps, const BFloat16* src, BFloat16* dst,
                          std::array<int64_t, 2> rows) {
  HWY_DYNAMIC_DISPATCH(RunDepthwiseHalves)(conv, steps, src, dst, rows);
}

}  // namespace tensord::kernels
#endif
