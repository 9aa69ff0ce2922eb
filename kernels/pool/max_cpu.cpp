// Max pooling with indices, for each instruction set. In planes a whole row of outputs is compared at once: an input
// row is split into `stride` rows of every stride-th element, in which pixels that have the same place in neighboring
// windows are contiguous.
#include "kernels/base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pool/max_cpu.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/pool/pool.h"

#ifndef TENSORD_POOL_MAX_INDEX
#define TENSORD_POOL_MAX_INDEX
namespace tensord::kernels {
// An index in the lane width of the elements.
template <class T>
using PoolIndex = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
}  // namespace tensord::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tensord::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class T>
constexpr T kLowest = -std::numeric_limits<T>::infinity();

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// The state of one row of outputs in `planes` planes: the maxima so far, and their indices. Short rows of several
// planes fill vectors together. Values common to all rows are computed once; the arrays end with room for one vector.
template <class T>
struct Rows {
  // Elements begin … end of a split row, and the place of the first of them in the row.
  struct Phase {
    int64_t begin, end, from;
  };
  // The start of the windows' k-th pixels in the split rows, and their distance from the outputs' pixel.
  struct Tap {
    int64_t cut, offset;
  };
  using D = hn::ScalableTag<T>;

  const PoolAxis& axis;
  int64_t outs, length, planes;
  std::vector<Phase> phases;
  std::vector<Tap> taps;
  std::vector<T> cut, best;                  // `length` elements for each plane, of which `outs` are used in the end
  std::vector<PoolIndex<T>> index, windows;  // windows: those of the outputs, without padding

  Rows(const PoolAxis& axis, int64_t width, int64_t outs, int64_t max_planes) : axis(axis), outs(outs) {
    // The first elements of the split rows are `first` strides into the row.
    const int64_t first = floor_div(-axis.padding, axis.stride);
    const int64_t last =
        floor_div((outs - 1) * axis.stride - axis.padding + (axis.kernel - 1) * axis.step, axis.stride);
    length = last - first + 1;
    constexpr int64_t kEnough = 128;
    planes = std::clamp<int64_t>(kEnough / length, 1, max_planes);
    for (int64_t p = 0; p < axis.stride; ++p) {
      const int64_t begin = std::max<int64_t>(0, floor_div(-p + axis.stride - 1, axis.stride) - first);
      const int64_t end = std::min(length, floor_div(width - 1 - p, axis.stride) + 1 - first);
      phases.push_back({begin, end, (first + begin) * axis.stride + p});
    }
    for (int64_t k = 0; k < axis.kernel; ++k) {
      const int64_t offset = k * axis.step - axis.padding, shift = floor_div(offset, axis.stride);
      taps.push_back({(offset - shift * axis.stride) * planes * length + (shift - first), offset});
    }
    const int64_t used = planes * length, more = length + static_cast<int64_t>(hn::Lanes(D()));
    cut.assign(static_cast<size_t>(axis.stride * used + more), kLowest<T>);
    best.resize(static_cast<size_t>(used + more));
    index.resize(best.size());
    for (int64_t i = 0; i < used + more; ++i) windows.push_back(static_cast<PoolIndex<T>>(i % length * axis.stride));
  }
  // A row of plane `plane`. Outside of it, elements keep the lowest number.
  void load(const T* row, int64_t plane) {
    T* to = cut.data() + plane * length;
    for (const Phase& phase : phases) {
      const T* from = row + phase.from;
      const int64_t count = phase.end - phase.begin, stride = axis.stride;
      T* const begin = to + phase.begin;
      if (stride == 2) {
        for (int64_t j = 0; j < count; ++j) begin[j] = from[2 * j];
      } else {
        for (int64_t j = 0; j < count; ++j) begin[j] = from[stride * j];
      }
      to += planes * length;
    }
  }
  // Compares with the loaded rows of `count` planes, whose first pixel is `pixel`.
  template <bool kIndex>
  void compare(int64_t pixel, int64_t count) {
    const D d;
    const hn::RebindToSigned<D> di;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    const int64_t used = (count - 1) * length + outs;
    T* b = best.data();
    PoolIndex<T>* at = index.data();
    for (const Tap& tap : taps) {
      const T* v = cut.data() + tap.cut;
      const auto here = hn::Set(di, static_cast<PoolIndex<T>>(pixel + tap.offset));
      for (int64_t i = 0; i < used; i += lanes) {
        const auto value = hn::LoadU(d, v + i), old = hn::LoadU(d, b + i);
        const auto takes = hn::Or(hn::Gt(value, old), hn::IsNaN(value));
        hn::StoreU(hn::IfThenElse(takes, value, old), d, b + i);
        if constexpr (kIndex) {
          const auto where = hn::Add(here, hn::LoadU(di, windows.data() + i));
          hn::StoreU(hn::IfThenElse(hn::RebindMask(di, takes), where, hn::LoadU(di, at + i)), di, at + i);
        }
      }
    }
  }
};

template <class T>
void finish_row(const T* best, const PoolIndex<T>* index, int64_t outs, const MaxPoolTarget<T>& target, int64_t out,
                T* dx) {
  if (target.out != nullptr) std::copy_n(best, outs, target.out + out);
  if (target.indices != nullptr) std::copy_n(index, outs, target.indices + out);
  if (dx != nullptr) {
    for (int64_t i = 0; i < outs; ++i) dx[index[i]] += target.g[out + i];
  }
}

// Row `h` of slice `d` of the outputs, for `count` planes from `plane` on.
template <bool kIndex, class T>
void pool_rows(const PoolProblem& pool, const PoolExtents& e, const T* x, const MaxPoolTarget<T>& target, Rows<T>& rows,
               int64_t plane, int64_t count, int64_t d, int64_t h) {
  const auto& [ad, ah, aw] = pool.windows.axes;
  const auto first = static_cast<PoolIndex<T>>((ad.begin[d] * e.in[1] + ah.begin[h]) * e.in[2]);
  std::fill(rows.best.begin(), rows.best.end(), kLowest<T>);
  for (int64_t p = 0; kIndex && p < count; ++p) {
    PoolIndex<T>* index = rows.index.data() + p * rows.length;
    for (int64_t i = 0; i < rows.outs; ++i) index[i] = first + static_cast<PoolIndex<T>>(aw.begin[i]);
  }
  for (int64_t i = ad.begin[d]; i < ad.end[d]; i += ad.step) {
    for (int64_t j = ah.begin[h]; j < ah.end[h]; j += ah.step) {
      const int64_t pixel = (i * e.in[1] + j) * e.in[2];
      for (int64_t p = 0; p < count; ++p) rows.load(x + (plane + p) * e.in_plane() + pixel, p);
      rows.template compare<kIndex>(pixel, count);
    }
  }
  for (int64_t p = 0; p < count; ++p) {
    T* dx = target.dx != nullptr ? target.dx + (plane + p) * e.in_plane() : nullptr;
    finish_row(rows.best.data() + p * rows.length, rows.index.data() + p * rows.length, rows.outs, target,
               (plane + p) * e.out_plane() + (d * e.out[1] + h) * e.out[2], dx);
  }
}

template <bool kIndex, class T>
void planes(const PoolProblem& pool, const PoolExtents& e, const T* x, const MaxPoolTarget<T>& target, int64_t begin,
            int64_t end) {
  if (begin == end) return;
  Rows<T> rows(pool.windows.axes[2], e.in[2], e.out[2], end - begin);
  for (int64_t plane = begin; plane < end; plane += rows.planes) {
    const int64_t count = std::min(rows.planes, end - plane);
    for (int64_t d = 0; d < e.out[0]; ++d) {
      for (int64_t h = 0; h < e.out[1]; ++h) pool_rows<kIndex>(pool, e, x, target, rows, plane, count, d, h);
    }
  }
}

// At most 64 channels of one window.
template <bool kIndex, class T>
void compare_last(const PoolProblem& pool, const PoolExtents& e, const T* from, int64_t p, int64_t count, T* best,
                  PoolIndex<T>* index) {
  const auto& [ad, ah, aw] = pool.windows.axes;
  const int64_t d = p / (e.out[1] * e.out[2]), h = p / e.out[2] % e.out[1], w = p % e.out[2];
  const auto first = static_cast<PoolIndex<T>>((ad.begin[d] * e.in[1] + ah.begin[h]) * e.in[2] + aw.begin[w]);
  for (int64_t c = 0; c < count; ++c) {
    best[c] = kLowest<T>;
    index[c] = first;
  }
  for (int64_t i = ad.begin[d]; i < ad.end[d]; i += ad.step) {
    for (int64_t j = ah.begin[h]; j < ah.end[h]; j += ah.step) {
      for (int64_t k = aw.begin[w]; k < aw.end[w]; k += aw.step) {
        const int64_t pixel = (i * e.in[1] + j) * e.in[2] + k;
        const T* v = from + pixel * e.channels;
        const auto here = static_cast<PoolIndex<T>>(pixel);
#pragma GCC ivdep
        for (int64_t c = 0; c < count; ++c) {
          const T value = v[c], old = best[c];
          const bool takes = value > old || value != value;
          best[c] = takes ? value : old;
          if constexpr (kIndex) index[c] = takes ? here : index[c];
        }
      }
    }
  }
}

template <bool kIndex, class T>
void last(const PoolProblem& pool, const PoolExtents& e, const T* x, const MaxPoolTarget<T>& target, int64_t channel,
          int64_t count, int64_t begin, int64_t end) {
  constexpr int64_t kMax = 64;
  T best[kMax];
  PoolIndex<T> index[kMax];
  const int64_t out_plane = e.out_plane();
  for (int64_t i = begin; i < end; ++i) {
    const int64_t image = i / out_plane * e.in_plane() * e.channels;
    for (int64_t c = channel; c < channel + count; c += kMax) {
      const int64_t n = std::min(kMax, channel + count - c), out = i * e.channels + c;
      compare_last<kIndex>(pool, e, x + image + c, i % out_plane, n, best, index);
      if (target.out != nullptr) std::copy(best, best + n, target.out + out);
      if (target.indices != nullptr) std::copy(index, index + n, target.indices + out);
      if (target.dx == nullptr) continue;
      T* dx = target.dx + image + c;
      for (int64_t k = 0; k < n; ++k) dx[index[k] * e.channels + k] += target.g[out + k];
    }
  }
}

template <class T>
void planes_of(const PoolProblem& pool, const PoolExtents& e, const T* x, const MaxPoolTarget<T>& target, int64_t begin,
               int64_t end) {
  if (target.indices != nullptr || target.dx != nullptr)
    planes<true>(pool, e, x, target, begin, end);
  else
    planes<false>(pool, e, x, target, begin, end);
}
template <class T>
void last_of(const PoolProblem& pool, const PoolExtents& e, const T* x, const MaxPoolTarget<T>& target, int64_t channel,
             int64_t count, int64_t begin, int64_t end) {
  if (target.indices != nullptr || target.dx != nullptr)
    last<true>(pool, e, x, target, channel, count, begin, end);
  else
    last<false>(pool, e, x, target, channel, count, begin, end);
}

}  // namespace

void max_planes_f32(const PoolProblem& pool, const PoolExtents& e, const float* x, const MaxPoolTarget<float>& target,
                    int64_t begin, int64_t end) {
  planes_of(pool, e, x, target, begin, end);
}
void max_planes_f64(const PoolProblem& pool, const PoolExtents& e, const double* x, const MaxPoolTarget<double>& target,
                    int64_t begin, int64_t end) {
  planes_of(pool, e, x, target, begin, end);
}
void max_last_f32(const PoolProblem& pool, const PoolExtents& e, const float* x, const MaxPoolTarget<float>& target,
                  int64_t channel, int64_t count, int64_t begin, int64_t end) {
  last_of(pool, e, x, target, channel, count, begin, end);
}
void max_last_f64(const PoolProblem& pool, const PoolExtents& e, const double* x, const MaxPoolTarget<double>& target,
                  int64_t channel, int64_t count, int64_t begin, int64_t end) {
  last_of(pool, e, x, target, channel, count, begin, end);
}

}  // namespace tensord::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensord::kernels {

HWY_EXPORT(max_planes_f32);
HWY_EXPORT(max_planes_f64);
HWY_EXPORT(max_last_f32);
HWY_EXPORT(max_last_f64);

bool is_plain_max_pool(const PoolProblem& pool, const PoolExtents& extents) {
  for (const PoolAxis& axis : pool.windows.axes) {
    if (axis.kernel == 0) return false;
  }
  // Indices must fit 32 bits, and a stride far larger than the row would split it into as many rows.
  return pool.is_max && extents.in_plane() < (int64_t{1} << 31) && pool.windows.axes[2].stride <= 64;
}

void max_pool_planes(const PoolProblem& pool, const PoolExtents& extents, const float* x, MaxPoolTarget<float> target,
                     int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(max_planes_f32)(pool, extents, x, target, begin, end);
}
void max_pool_planes(const PoolProblem& pool, const PoolExtents& extents, const double* x, MaxPoolTarget<double> target,
                     int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(max_planes_f64)(pool, extents, x, target, begin, end);
}
void max_pool_last(const PoolProblem& pool, const PoolExtents& extents, const float* x, MaxPoolTarget<float> target,
                   int64_t channel, int64_t count, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(max_last_f32)(pool, extents, x, target, channel, count, begin, end);
}
void max_pool_last(const PoolProblem& pool, const PoolExtents& extents, const double* x, MaxPoolTarget<double> target,
                   int64_t channel, int64_t count, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(max_last_f64)(pool, extents, x, target, channel, count, begin, end);
}

}  // namespace tensord::kernels
#endif
