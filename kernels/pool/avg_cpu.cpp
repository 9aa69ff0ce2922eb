// Average pooling of planes, and its backward, for each instruction set.
#include "kernels/base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pool/avg_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/pool/pool.h"

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Four partial sums, since a single one would wait longer for its last addition than for memory.
template <class T>
T sum_of(const T* x, int64_t count) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  T sum = 0;
  int64_t i = 0;
  if (count >= 4 * lanes) {
    auto a = hn::Zero(d), b = a, c = a, e = a;
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
      a = hn::Add(a, hn::LoadU(d, x + i));
      b = hn::Add(b, hn::LoadU(d, x + i + lanes));
      c = hn::Add(c, hn::LoadU(d, x + i + 2 * lanes));
      e = hn::Add(e, hn::LoadU(d, x + i + 3 * lanes));
    }
    sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
  }
  for (; i < count; ++i) sum += x[i];
  return sum;
}

// Sums each line of pixels separately, so that long sums stay exact; adjacent lines are one line, in parts.
template <class T>
T sum_window(const PoolProblem& pool, const PoolExtents& e, const T* x, int64_t d, int64_t h, int64_t w) {
  const auto& [ad, ah, aw] = pool.windows.axes;
  const int64_t columns = aw.end[w] - aw.begin[w], rows = ah.end[h] - ah.begin[h];
  if (columns <= 0 || rows <= 0) return 0;
  constexpr int64_t kPiece = 1024;
  T sum = 0;
  for (int64_t i = ad.begin[d]; i < ad.end[d]; ++i) {
    const T* first = x + (i * e.in[1] + ah.begin[h]) * e.in[2] + aw.begin[w];
    if (columns == e.in[2]) {
      for (int64_t j = 0; j < columns * rows; j += kPiece)
        sum += sum_of(first + j, std::min(kPiece, columns * rows - j));
      continue;
    }
    for (int64_t j = 0; j < rows; ++j) sum += sum_of(first + j * e.in[2], columns);
  }
  return sum;
}

template <class T>
void averages(const PoolProblem& pool, const PoolExtents& e, const T* x, T* out, int64_t begin, int64_t end) {
  const auto& [ad, ah, aw] = pool.windows.axes;
  out += begin * e.out_plane();
  for (int64_t plane = begin; plane < end; ++plane) {
    for (int64_t d = 0; d < e.out[0]; ++d) {
      for (int64_t h = 0; h < e.out[1]; ++h) {
        for (int64_t w = 0; w < e.out[2]; ++w) {
          const bool is_empty = ad.end[d] <= ad.begin[d] || ah.end[h] <= ah.begin[h] || aw.end[w] <= aw.begin[w];
          const T sum = sum_window(pool, e, x + plane * e.in_plane(), d, h, w);
          *out++ = is_empty ? T(0) : sum / static_cast<T>(pool.divisor_at(d, h, w));
        }
      }
    }
  }
}

template <class T>
void add_share(T share, T* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] += share;
}

template <class T>
void planes(const PoolProblem& pool, const PoolExtents& e, const T* g, T* dx, int64_t begin, int64_t end) {
  const auto& [ad, ah, aw] = pool.windows.axes;
  const T* from = g + begin * e.out_plane();
  for (int64_t plane = begin; plane < end; ++plane) {
    T* to = dx + plane * e.in_plane();
    for (int64_t d = 0; d < e.out[0]; ++d) {
      for (int64_t h = 0; h < e.out[1]; ++h) {
        const int64_t rows = ah.end[h] - ah.begin[h];
        for (int64_t w = 0; w < e.out[2]; ++w) {
          const T share = *from++ / static_cast<T>(pool.divisor_at(d, h, w));
          const int64_t columns = aw.end[w] - aw.begin[w];
          for (int64_t i = ad.begin[d]; i < ad.end[d]; ++i) {
            T* first = to + (i * e.in[1] + ah.begin[h]) * e.in[2] + aw.begin[w];
            if (columns == e.in[2]) {
              add_share(share, first, rows * columns);
              continue;
            }
            for (int64_t j = 0; j < rows; ++j) add_share(share, first + j * e.in[2], columns);
          }
        }
      }
    }
  }
}

// `count` channels of one image whose memory order is spatial…, C.
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

void averages_f32(const PoolProblem& pool, const PoolExtents& e, const float* x, float* out, int64_t begin,
                  int64_t end) {
  averages(pool, e, x, out, begin, end);
}
void averages_f64(const PoolProblem& pool, const PoolExtents& e, const double* x, double* out, int64_t begin,
                  int64_t end) {
  averages(pool, e, x, out, begin, end);
}
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

HWY_EXPORT(averages_f32);
HWY_EXPORT(averages_f64);
HWY_EXPORT(avg_planes_f32);
HWY_EXPORT(avg_planes_f64);
HWY_EXPORT(avg_last_f32);
HWY_EXPORT(avg_last_f64);

void avg_pool_planes(const PoolProblem& pool, const PoolExtents& extents, const float* x, float* out, int64_t begin,
                     int64_t end) {
  HWY_DYNAMIC_DISPATCH(averages_f32)(pool, extents, x, out, begin, end);
}
void avg_pool_planes(const PoolProblem& pool, const PoolExtents& extents, const double* x, double* out, int64_t begin,
                     int64_t end) {
  HWY_DYNAMIC_DISPATCH(averages_f64)(pool, extents, x, out, begin, end);
}
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
