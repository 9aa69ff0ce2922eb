// The backward of average pooling, for each instruction set.
#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pool_backward_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/pool.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

template <class T>
void planes(const PoolProblem& pool, const PoolExtents& e, const T* g, T* dx, int64_t begin, int64_t end) {
  const auto& [ad, ah, aw] = pool.windows.axes;
  for (int64_t plane = begin; plane < end; ++plane) {
    const T* from = g + plane * e.out_plane();
    T* to = dx + plane * e.in_plane();
    for (int64_t d = 0; d < e.out[0]; ++d) {
      for (int64_t h = 0; h < e.out[1]; ++h) {
        for (int64_t w = 0; w < e.out[2]; ++w) {
          const T share = *from++ / static_cast<T>(pool.divisor_at(d, h, w));
          for (int64_t i = ad.begin[d]; i < ad.end[d]; ++i) {
            for (int64_t j = ah.begin[h]; j < ah.end[h]; ++j) {
              T* row = to + (i * e.in[1] + j) * e.in[2];
              for (int64_t k = aw.begin[w]; k < aw.end[w]; ++k) row[k] += share;
            }
          }
        }
      }
    }
  }
}

// `count` channels of one image in memory order spatial…, C.
template <class T>
void last(const PoolProblem& pool, const PoolExtents& e, const T* g, T* dx, int64_t channel, int64_t count,
          int64_t image) {
  const auto& [ad, ah, aw] = pool.windows.axes;
  const T* from = g + image * e.out_plane() * e.channels + channel;
  T* to = dx + image * e.in_plane() * e.channels + channel;
  for (int64_t d = 0; d < e.out[0]; ++d) {
    for (int64_t h = 0; h < e.out[1]; ++h) {
      for (int64_t w = 0; w < e.out[2]; ++w, from += e.channels) {
        const T scale = T(1) / static_cast<T>(pool.divisor_at(d, h, w));
        for (int64_t i = ad.begin[d]; i < ad.end[d]; ++i) {
          for (int64_t j = ah.begin[h]; j < ah.end[h]; ++j) {
            for (int64_t k = aw.begin[w]; k < aw.end[w]; ++k) {
              T* pixel = to + ((i * e.in[1] + j) * e.in[2] + k) * e.channels;
#pragma GCC ivdep
              for (int64_t c = 0; c < count; ++c) pixel[c] += from[c] * scale;
            }
          }
        }
      }
    }
  }
}

}  // namespace

void avg_planes_f32(const PoolProblem& pool, const PoolExtents& e, const float* g, float* dx, int64_t begin,
                    int64_t end) {
  planes(pool, e, g, dx, begin, end);
}
void avg_planes_f64(const PoolProblem& pool, const PoolExtents& e, const double* g, double* dx, int64_t begin,
                    int64_t end) {
  planes(pool, e, g, dx, begin, end);
}
void avg_last_f32(const PoolProblem& pool, const PoolExtents& e, const float* g, float* dx, int64_t channel,
                  int64_t count, int64_t image) {
  last(pool, e, g, dx, channel, count, image);
}
void avg_last_f64(const PoolProblem& pool, const PoolExtents& e, const double* g, double* dx, int64_t channel,
                  int64_t count, int64_t image) {
  last(pool, e, g, dx, channel, count, image);
}

}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {

HWY_EXPORT(avg_planes_f32);
HWY_EXPORT(avg_planes_f64);
HWY_EXPORT(avg_last_f32);
HWY_EXPORT(avg_last_f64);

void avg_pool_backward_planes(const PoolProblem& pool, const PoolExtents& extents, const float* g, float* dx,
                              int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(avg_planes_f32)(pool, extents, g, dx, begin, end);
}
void avg_pool_backward_planes(const PoolProblem& pool, const PoolExtents& extents, const double* g, double* dx,
                              int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(avg_planes_f64)(pool, extents, g, dx, begin, end);
}
void avg_pool_backward_last(const PoolProblem& pool, const PoolExtents& extents, const float* g, float* dx,
                            int64_t channel, int64_t count, int64_t image) {
  HWY_DYNAMIC_DISPATCH(avg_last_f32)(pool, extents, g, dx, channel, count, image);
}
void avg_pool_backward_last(const PoolProblem& pool, const PoolExtents& extents, const double* g, double* dx,
                            int64_t channel, int64_t count, int64_t image) {
  HWY_DYNAMIC_DISPATCH(avg_last_f64)(pool, extents, g, dx, channel, count, image);
}

}  // namespace tensord::kernels
#endif
