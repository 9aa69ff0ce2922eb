#include <cstring>

#include "core/base/parallel.h"
#include "kernels/upsample.h"

namespace tensord::kernels {
namespace {

using Extents = ResampleExtents;

// Calls fn(input pixel, weight) for each tap of output (d, h, w).
template <class C, class Fn>
void for_each_tap(const std::array<ResampleAxis, 3>& axes, const Extents& e, int64_t d, int64_t h, int64_t w, Fn&& fn) {
  const auto& [ad, ah, aw] = axes;
  for (int64_t i = d * ad.taps; i < (d + 1) * ad.taps; ++i) {
    for (int64_t j = h * ah.taps; j < (h + 1) * ah.taps; ++j) {
      const int64_t row = (ad.index[i] * e.in[1] + ah.index[j]) * e.in[2];
      const C by = static_cast<C>(ad.weight[i]) * static_cast<C>(ah.weight[j]);
      for (int64_t k = w * aw.taps; k < (w + 1) * aw.taps; ++k)
        fn(row + aw.index[k], by * static_cast<C>(aw.weight[k]));
    }
  }
}

// Runs fn(outer, d, h, w, output pixel) over all of them.
template <class Fn>
void for_each_output(int64_t outer, const Extents& e, int64_t work, Fn&& fn) {
  const int64_t plane = e.out_plane();
  parallel_for(outer * plane, std::max<int64_t>(1, 16384 / std::max<int64_t>(work, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t p = i % plane;
                   fn(i / plane, p / (e.out[1] * e.out[2]), p / e.out[2] % e.out[1], p % e.out[2], p);
                 }
               });
}

template <class T>
void weigh_planes(const std::array<ResampleAxis, 3>& axes, const Extents& e, const T* x, T* out) {
  using C = ComputeType<T>;
  for_each_output(e.batch * e.channels, e, 8, [&](int64_t plane, int64_t d, int64_t h, int64_t w, int64_t p) {
    const T* from = x + plane * e.in_plane();
    C sum = 0;
    for_each_tap<C>(axes, e, d, h, w, [&](int64_t pixel, C by) { sum += by * static_cast<C>(from[pixel]); });
    out[plane * e.out_plane() + p] = static_cast<T>(sum);
  });
}

template <class T>
void weigh_last(const std::array<ResampleAxis, 3>& axes, const Extents& e, const T* x, T* out) {
  using C = ComputeType<T>;
  for_each_output(e.batch, e, 8 * e.channels, [&](int64_t n, int64_t d, int64_t h, int64_t w, int64_t p) {
    constexpr int64_t kBlock = 256;  // channels whose sums are held at once
    C sums[kBlock];
    T* to = out + (n * e.out_plane() + p) * e.channels;
    for (int64_t first = 0; first < e.channels; first += kBlock) {
      const int64_t count = std::min(kBlock, e.channels - first);
      std::fill(sums, sums + count, C(0));
      for_each_tap<C>(axes, e, d, h, w, [&](int64_t pixel, C by) {
        const T* row = x + (n * e.in_plane() + pixel) * e.channels + first;
        for (int64_t c = 0; c < count; ++c) sums[c] += by * static_cast<C>(row[c]);
      });
      for (int64_t c = 0; c < count; ++c) to[first + c] = static_cast<T>(sums[c]);
    }
  });
}

// One tap: `unit` bytes an input pixel holds are copied.
void copy_pixels(const std::array<ResampleAxis, 3>& axes, const Extents& e, int64_t outer, int64_t unit, const char* x,
                 char* out) {
  const auto& [ad, ah, aw] = axes;
  for_each_output(outer, e, unit, [&](int64_t plane, int64_t d, int64_t h, int64_t w, int64_t p) {
    const int64_t pixel = (ad.index[d] * e.in[1] + ah.index[h]) * e.in[2] + aw.index[w];
    std::memcpy(out + (plane * e.out_plane() + p) * unit, x + (plane * e.in_plane() + pixel) * unit,
                static_cast<size_t>(unit));
  });
}

}  // namespace

Resampling::Resampling(std::array<ResampleAxis, 3> resample_axes, size_t spatial, const Tensor& input,
                       const Tensor& out)
    : axes(std::move(resample_axes)),
      extents{input.sizes()[0], input.sizes()[1], {1, 1, 1}, {1, 1, 1}},
      dtype(input.dtype()),
      is_last(input.ndim() >= 4 && input.is_channels_last() && out.is_channels_last() && !input.is_contiguous()) {
  for (size_t i = 0; i < spatial; ++i) {
    extents.in[3 - spatial + i] = input.sizes()[2 + i];
    extents.out[3 - spatial + i] = out.sizes()[2 + i];
  }
}

void Resampling::run(const void* x, void* out) const {
  const Extents& e = extents;
  if (axes[0].taps * axes[1].taps * axes[2].taps == 1) {
    const auto size = static_cast<int64_t>(size_of(dtype));
    const auto* from = static_cast<const char*>(x);
    auto* to = static_cast<char*>(out);
    return is_last ? copy_pixels(axes, e, e.batch, size * e.channels, from, to)
                   : copy_pixels(axes, e, e.batch * e.channels, size, from, to);
  }
  dispatch_floating(dtype, "upsample", [&]<class T>() {
    if (is_last)
      weigh_last<T>(axes, e, static_cast<const T*>(x), static_cast<T*>(out));
    else
      weigh_planes<T>(axes, e, static_cast<const T*>(x), static_cast<T*>(out));
  });
}

}  // namespace tensord::kernels
