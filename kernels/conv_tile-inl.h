// Included inside HWY_NAMESPACE by the convolutions' vector code: one tile of results in registers.

#include "kernels/conv_finish-inl.h"

constexpr int kTileVectors = 2;
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
  const float* bias;  // null: zeros
  float* c[2];
  const float* other[2];  // null: nothing is added
  int64_t c_step, columns;
  float low, high;
};

// kGroups groups of kPixels pixels, kVectors vectors of channels.
template <int kGroups, int kPixels, int kVectors>
struct ConvTile {
  using Sums = V[kGroups][kPixels][kVectors];

  static HWY_INLINE void multiply(const TileRun& run, Sums& sums) {
    const D d;
    const float* b = run.b;
    const int64_t step = run.a_step;
    for (int64_t t = 0; t < run.tap_count; ++t) {
      const float* a0 = run.a[0] + run.taps[t];
      const float* a1 = run.a[kGroups - 1] + run.taps[t];
      for (int64_t k = 0; k < run.depth; ++k) {
        V right[kVectors];
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) right[v] = hn::LoadU(d, b + v * kLanes);
#pragma GCC unroll 2
        for (int g = 0; g < kGroups; ++g) {
#pragma GCC unroll 8
          for (int r = 0; r < kPixels; ++r) {
            const V left = hn::Set(d, (g == 0 ? a0 : a1)[r * step]);
#pragma GCC unroll 2
            for (int v = 0; v < kVectors; ++v) sums[g][r][v] = hn::MulAdd(left, right[v], sums[g][r][v]);
          }
        }
        b += kVectors * kLanes;
        ++a0, ++a1;
        // Keeps the compiler from making one pointer of each pixel.
        asm("" : "+r"(a0), "+r"(a1));
      }
    }
  }

  static void run(const TileRun& run) {
    const D d;
    Sums sums;
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const V start = run.bias ? hn::LoadU(d, run.bias + v * kLanes) : hn::Zero(d);
#pragma GCC unroll 2
      for (int g = 0; g < kGroups; ++g) {
#pragma GCC unroll 8
        for (int r = 0; r < kPixels; ++r) sums[g][r][v] = start;
      }
    }
    multiply(run, sums);
    const V low = hn::Set(d, run.low), high = hn::Set(d, run.high);
    const bool is_whole = run.columns >= kVectors * kLanes;
#pragma GCC unroll 2
    for (int g = 0; g < kGroups; ++g) {
#pragma GCC unroll 8
      for (int r = 0; r < kPixels; ++r) {
        float* c = run.c[g] + r * run.c_step;
        const float* other = run.other[g] ? run.other[g] + r * run.c_step : nullptr;
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          if (is_whole || (v + 1) * kLanes <= run.columns) {
            V x = sums[g][r][v];
            if (other) x = hn::Add(x, hn::LoadU(d, other + v * kLanes));
            hn::StoreU(clamp_of(x, low, high), d, c + v * kLanes);
          } else {
            store_part(run, sums[g][r][v], other ? other + v * kLanes : nullptr, c + v * kLanes,
                       run.columns - v * kLanes);
          }
        }
      }
    }
  }

  static HWY_INLINE void store_part(const TileRun& run, V x, const float* other, float* c, int64_t count) {
    const D d;
#if HWY_TARGET == HWY_AVX3
    const auto mask = hn::FirstN(d, static_cast<size_t>(count));
    if (other) x = hn::Add(x, hn::MaskedLoad(mask, d, other));
    hn::BlendedStore(clamp_of(x, hn::Set(d, run.low), hn::Set(d, run.high)), mask, d, c);
#else
    HWY_ALIGN float part[kLanes] = {};
    const size_t bytes = static_cast<size_t>(count) * sizeof(float);
    if (other) {
      std::memcpy(part, other, bytes);
      x = hn::Add(x, hn::Load(d, part));
    }
    hn::Store(clamp_of(x, hn::Set(d, run.low), hn::Set(d, run.high)), d, part);
    std::memcpy(c, part, bytes);
#endif
  }
};

template <int kVectors>
HWY_INLINE void run_single(int64_t pixels, const TileRun& run) {
  switch (pixels) {
    case 1: return ConvTile<1, 1, kVectors>::run(run);
    case 2: return ConvTile<1, 2, kVectors>::run(run);
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
    case 3: return ConvTile<1, 3, kVectors>::run(run);
    case 4: return ConvTile<1, 4, kVectors>::run(run);
    case 5: return ConvTile<1, 5, kVectors>::run(run);
    case 6: return ConvTile<1, 6, kVectors>::run(run);
#endif
    default: return ConvTile<1, kGroupPixels, kVectors>::run(run);
  }
}

// One group of `pixels`, or two full ones. A panel of which half is empty lies as narrow in the weights.
HWY_INLINE void run_tile(bool is_pair, int64_t pixels, const TileRun& run, bool is_narrow) {
  if (is_pair)
    return is_narrow ? ConvTile<2, kGroupPixels, 1>::run(run) : ConvTile<2, kGroupPixels, kTileVectors>::run(run);
  return is_narrow ? run_single<1>(pixels, run) : run_single<kTileVectors>(pixels, run);
}
