// Pooling of f32 in memory order N, spatial…, C: several vectors of channels at a time.
#include "kernels/base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pool/last_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "kernels/pool/pool.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The pixels of a window: `rows` lines of `columns`, from `first` on.
struct Window {
  const float* first;
  int64_t planes, plane_step, rows, row_step, columns, column_step;
};

// Keeps a NaN of either operand.
struct Largest {
  template <class V>
  static HWY_INLINE V join(V best, V x) {
    return hn::IfThenElse(hn::Or(hn::Ge(best, x), hn::IsNaN(best)), best, x);
  }
  static constexpr float kStart = -std::numeric_limits<float>::infinity();
};
struct Total {
  template <class V>
  static HWY_INLINE V join(V sum, V x) {
    return hn::Add(sum, x);
  }
  static constexpr float kStart = 0;
};

// kVectors vectors of channels over one window. Sums each line of pixels separately, so that long sums stay exact.
template <class Join, int kVectors, class D>
HWY_INLINE void fold(D d, const Window& window, float scale, float* out) {
  using V = hn::Vec<D>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V start = hn::Set(d, Join::kStart);
  V all[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) all[v] = start;
  for (int64_t p = 0; p < window.planes; ++p) {
    for (int64_t r = 0; r < window.rows; ++r) {
      const float* x = window.first + p * window.plane_step + r * window.row_step;
      V line[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) line[v] = start;
      for (int64_t c = 0; c < window.columns; ++c, x += window.column_step) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) line[v] = Join::join(line[v], hn::LoadU(d, x + v * lanes));
      }
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) all[v] = Join::join(all[v], line[v]);
    }
  }
  const V by = hn::Set(d, scale);
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) hn::StoreU(scale == 1 ? all[v] : hn::Div(all[v], by), d, out + v * lanes);
}

template <class Join>
HWY_INLINE void fold_channels(Window window, int64_t channels, float scale, float* out) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  const auto advance = [&](int64_t count) HWY_ATTR {
    c += count;
    window.first += count;
  };
  for (; c + 4 * lanes <= channels; advance(4 * lanes)) fold<Join, 4>(d, window, scale, out + c);
  for (; c + lanes <= channels; advance(lanes)) fold<Join, 1>(d, window, scale, out + c);
  for (; c < channels; advance(1)) fold<Join, 1>(one, window, scale, out + c);
}

void RunPool(const PoolProblem& pool, const PoolExtents& e, const float* x, float* out, int64_t begin, int64_t end) {
  const auto& [ad, ah, aw] = pool.windows.axes;
  const int64_t plane = e.out_plane(), row = e.in[2] * e.channels;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t p = i % plane, d = p / (e.out[1] * e.out[2]), h = p / e.out[2] % e.out[1], w = p % e.out[2];
    const auto count = [](const PoolAxis& axis, int64_t at) {
      return std::max<int64_t>(0, (axis.end[at] - axis.begin[at] + axis.step - 1) / axis.step);
    };
    const Window window{x + i / plane * e.in_plane() * e.channels + ad.begin[d] * e.in[1] * row + ah.begin[h] * row +
                            aw.begin[w] * e.channels,
                        count(ad, d),
                        ad.step * e.in[1] * row,
                        count(ah, h),
                        ah.step * row,
                        count(aw, w),
                        aw.step * e.channels};
    float* to = out + i * e.channels;
    if (pool.is_max) {
      fold_channels<Largest>(window, e.channels, 1, to);
    } else if (window.planes * window.rows * window.columns == 0) {
      std::fill(to, to + e.channels, 0.0f);
    } else {
      fold_channels<Total>(window, e.channels, static_cast<float>(pool.divisor_at(d, h, w)), to);
    }
  }
}

}  // namespace
}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {

HWY_EXPORT(RunPool);

void pool_last_pixels(const PoolProblem& pool, const PoolExtents& extents, const float* x, float* out, int64_t begin,
                      int64_t end) {
  HWY_DYNAMIC_DISPATCH(RunPool)(pool, extents, x, out, begin, end);
}

}  // namespace tensord::kernels
#endif
