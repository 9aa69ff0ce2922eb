// Included inside HWY_NAMESPACE by the convolutions' vector code: one tile of results in registers.

#include "kernels/conv/epilogue-inl.h"

constexpr int kTileVectors = 2;
constexpr int64_t kLineFloats = 16;  // of a cache line
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int kGroupPixels = 7;  // 2 groups × 2 vectors take 28 of 32 registers
#else
constexpr int kGroupPixels = 3;  // 12 of 16
#endif

struct TileRun {
  const float* a[2];  // the first pixels of the two groups
  const int64_t* taps;
  int64_t tap_count, depth, a_step;
  const float* b;
  int64_t ahead;      // weights that will be asked for next, this many floats after those in use; 0: none
  const float* bias;  // null: zeros
  float* c[2];
  const float* other[2];  // null: nothing is added
  int64_t c_step, columns;
  float low, high;
};

// Vectors of a panel's last channels may be half as long, so that 24 channels cost no more than they are.
using HalfD = hn::Half<D>;
using HalfV = hn::Vec<HalfD>;
constexpr bool kHasHalves = HWY_TARGET == HWY_AVX3;

// Channels that a panel of `count` has in the weights.
HWY_INLINE int64_t panel_width(int64_t count) {
  if (count <= kLanes) return kLanes;
  return kHasHalves && count <= kLanes + kLanes / 2 ? kLanes + kLanes / 2 : kTileVectors * kLanes;
}

// Writes the first `count` of x, after the sum with `other` and the clamp.
template <class VD>
HWY_INLINE void store_result(VD d, const TileRun& run, hn::Vec<VD> x, const float* other, float* c, int64_t count) {
  const auto low = hn::Set(d, run.low), high = hn::Set(d, run.high);
  constexpr auto kMax = static_cast<int64_t>(hn::MaxLanes(VD()));
  if (count >= kMax) {
    if (other) x = hn::Add(x, hn::LoadU(d, other));
    hn::StoreU(clamp_of(x, low, high), d, c);
    return;
  }
#if HWY_TARGET == HWY_AVX3
  const auto mask = hn::FirstN(d, static_cast<size_t>(count));
  if (other) x = hn::Add(x, hn::MaskedLoad(mask, d, other));
  hn::BlendedStore(clamp_of(x, low, high), mask, d, c);
#else
  HWY_ALIGN float part[kLanes] = {};
  const size_t bytes = static_cast<size_t>(count) * sizeof(float);
  if (other) {
    std::memcpy(part, other, bytes);
    x = hn::Add(x, hn::Load(d, part));
  }
  hn::Store(clamp_of(x, low, high), d, part);
  std::memcpy(c, part, bytes);
#endif
}

// kGroups groups of kPixels pixels, kVectors vectors of channels and perhaps half a one.
template <int kGroups, int kPixels, int kVectors, bool kHalf>
struct ConvTile {
  using Sums = V[kGroups][kPixels][kVectors];
  using HalfSums = HalfV[kGroups][kPixels];
  static constexpr int64_t kWidth = kVectors * kLanes + (kHalf ? kLanes / 2 : 0);

  static HWY_INLINE void multiply(const TileRun& run, Sums& sums, HalfSums& halves) {
    const D d;
    const HalfD half;
    const float* b = run.b;
    const int64_t step = run.a_step, ahead = run.ahead;
    for (int64_t t = 0; t < run.tap_count; ++t) {
      const float* a0 = run.a[0] + run.taps[t];
      const float* a1 = run.a[kGroups - 1] + run.taps[t];
      for (int64_t k = 0; k < run.depth; ++k) {
        V right[kVectors];
        HalfV right_half = hn::Zero(half);
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) right[v] = hn::LoadU(d, b + v * kLanes);
        if constexpr (kHalf) right_half = hn::LoadU(half, b + kVectors * kLanes);
#pragma GCC unroll 2
        for (int g = 0; g < kGroups; ++g) {
#pragma GCC unroll 8
          for (int r = 0; r < kPixels; ++r) {
            const V left = hn::Set(d, (g == 0 ? a0 : a1)[r * step]);
#pragma GCC unroll 2
            for (int v = 0; v < kVectors; ++v) sums[g][r][v] = hn::MulAdd(left, right[v], sums[g][r][v]);
            if constexpr (kHalf) halves[g][r] = hn::MulAdd(hn::LowerHalf(half, left), right_half, halves[g][r]);
          }
        }
#pragma GCC unroll 2
        for (int64_t line = 0; line < kWidth; line += kLineFloats) __builtin_prefetch(b + ahead + line, 0, 2);
        b += kWidth;
        ++a0, ++a1;
        // Keeps the compiler from making one pointer of each pixel.
        asm("" : "+r"(a0), "+r"(a1));
      }
    }
  }

  static void run(const TileRun& run) {
    const D d;
    const HalfD half;
    Sums sums;
    HalfSums halves;
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
#pragma GCC unroll 8
      for (int r = 0; r < kPixels; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) sums[g][r][v] = run.bias ? hn::LoadU(d, run.bias + v * kLanes) : hn::Zero(d);
        halves[g][r] = kHalf && run.bias ? hn::LoadU(half, run.bias + kVectors * kLanes) : hn::Zero(half);
      }
    }
    multiply(run, sums, halves);
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
#pragma GCC unroll 8
      for (int r = 0; r < kPixels; ++r) {
        float* c = run.c[g] + r * run.c_step;
        const float* other = run.other[g] ? run.other[g] + r * run.c_step : nullptr;
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          const int64_t at = v * kLanes;
          store_result(d, run, sums[g][r][v], other ? other + at : nullptr, c + at, run.columns - at);
        }
        constexpr int64_t kAt = kVectors * kLanes;
        if constexpr (kHalf)
          store_result(half, run, halves[g][r], other ? other + kAt : nullptr, c + kAt, run.columns - kAt);
      }
    }
  }
};

template <int kVectors, bool kHalf>
HWY_INLINE void run_single(int64_t pixels, const TileRun& run) {
  switch (pixels) {
    case 1: return ConvTile<1, 1, kVectors, kHalf>::run(run);
    case 2: return ConvTile<1, 2, kVectors, kHalf>::run(run);
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
    case 3: return ConvTile<1, 3, kVectors, kHalf>::run(run);
    case 4: return ConvTile<1, 4, kVectors, kHalf>::run(run);
    case 5: return ConvTile<1, 5, kVectors, kHalf>::run(run);
    case 6: return ConvTile<1, 6, kVectors, kHalf>::run(run);
#endif
    default: return ConvTile<1, kGroupPixels, kVectors, kHalf>::run(run);
  }
}

template <int kVectors, bool kHalf>
HWY_INLINE void run_pixels(bool is_pair, int64_t pixels, const TileRun& run) {
  if (is_pair) return ConvTile<2, kGroupPixels, kVectors, kHalf>::run(run);
  run_single<kVectors, kHalf>(pixels, run);
}

// One group of `pixels`, or two full ones.
HWY_INLINE void run_tile(bool is_pair, int64_t pixels, const TileRun& run) {
  const int64_t width = panel_width(run.columns);
  if (width == kLanes) return run_pixels<1, false>(is_pair, pixels, run);
  if (width == kTileVectors * kLanes) return run_pixels<kTileVectors, false>(is_pair, pixels, run);
  if constexpr (kHasHalves) run_pixels<1, true>(is_pair, pixels, run);
}
