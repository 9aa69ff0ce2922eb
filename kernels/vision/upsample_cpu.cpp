// Upsampling on the CPU: Resampling implements all modes.
#include <cstring>
#include <optional>

#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "kernels/vision/upsample.h"

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

// Goes over all outputs: fn(outer, d, h, w, output pixel).
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
    constexpr int64_t kBlock = 256;  // channels whose sums are kept at once
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

// With a single tap, copies the `unit` bytes that an input pixel holds.
void copy_pixels(const std::array<ResampleAxis, 3>& axes, const Extents& e, int64_t outer, int64_t unit, const char* x,
                 char* out) {
  const auto& [ad, ah, aw] = axes;
  for_each_output(outer, e, unit, [&](int64_t plane, int64_t d, int64_t h, int64_t w, int64_t p) {
    const int64_t pixel = (ad.index[d] * e.in[1] + ah.index[h]) * e.in[2] + aw.index[w];
    std::memcpy(out + (plane * e.out_plane() + p) * unit, x + (plane * e.in_plane() + pixel) * unit,
                static_cast<size_t>(unit));
  });
}

// Gradients of planes; each thread has a part of the planes.
template <class T>
void spread_planes(const std::array<ResampleAxis, 3>& axes, const Extents& e, T* x, const T* out) {
  using C = ComputeType<T>;
  const int64_t in = e.in_plane(), plane_size = e.out_plane();
  parallel_for(e.batch * e.channels, std::max<int64_t>(1, 4096 / plane_size), [&](int64_t begin, int64_t end) {
    std::vector<C> sums(static_cast<size_t>(in));
    for (int64_t plane = begin; plane < end; ++plane) {
      std::fill(sums.begin(), sums.end(), C(0));
      const T* from = out + plane * plane_size;
      for (int64_t p = 0; p < plane_size; ++p) {
        const auto g = static_cast<C>(from[p]);
        for_each_tap<C>(axes, e, p / (e.out[1] * e.out[2]), p / e.out[2] % e.out[1], p % e.out[2],
                        [&](int64_t pixel, C by) { sums[static_cast<size_t>(pixel)] += by * g; });
      }
      for (int64_t i = 0; i < in; ++i) x[plane * in + i] = static_cast<T>(sums[static_cast<size_t>(i)]);
    }
  });
}

// channels_last: each thread has a block of channels of one image.
template <class T>
void spread_last(const std::array<ResampleAxis, 3>& axes, const Extents& e, T* x, const T* out) {
  using C = ComputeType<T>;
  constexpr int64_t kBlock = 32;
  const int64_t blocks = (e.channels + kBlock - 1) / kBlock, in = e.in_plane();
  parallel_for(e.batch * blocks, 1, [&](int64_t begin, int64_t end) {
    std::vector<C> sums(static_cast<size_t>(in * kBlock));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / blocks, first = i % blocks * kBlock, count = std::min(kBlock, e.channels - first);
      std::fill(sums.begin(), sums.end(), C(0));
      for (int64_t p = 0; p < e.out_plane(); ++p) {
        const T* from = out + (n * e.out_plane() + p) * e.channels + first;
        for_each_tap<C>(axes, e, p / (e.out[1] * e.out[2]), p / e.out[2] % e.out[1], p % e.out[2],
                        [&](int64_t pixel, C by) {
                          C* to = sums.data() + pixel * kBlock;
                          for (int64_t c = 0; c < count; ++c) to[c] += by * static_cast<C>(from[c]);
                        });
      }
      for (int64_t pixel = 0; pixel < in; ++pixel) {
        T* to = x + (n * in + pixel) * e.channels + first;
        for (int64_t c = 0; c < count; ++c) to[c] = static_cast<T>(sums[static_cast<size_t>(pixel * kBlock + c)]);
      }
    }
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

void Resampling::run_transposed(void* x, const void* out) const {
  dispatch_floating(dtype, "upsample backward", [&]<class T>() {
    if (is_last)
      spread_last<T>(axes, extents, static_cast<T*>(x), static_cast<const T*>(out));
    else
      spread_planes<T>(axes, extents, static_cast<T*>(x), static_cast<const T*>(out));
  });
}

namespace {

using ops::IntList;
using Mode = ResampleMode;
using Context = const ops::KernelContext&;
using MaybeInts = std::optional<IntList>;
using MaybeFloats = std::optional<std::vector<double>>;
using MaybeFloat = std::optional<double>;

void resample(const ResampleRule& rule, const Tensor& input, Tensor& out) {
  if (out.numel() == 0) return;
  const bool has_order = input.ndim() >= 4 && input.is_channels_last() && out.is_channels_last();
  const Tensor x = has_order ? input : input.contiguous();
  const Resampling resampling = make_resampling(rule, x, out);
  if (out.device().kind == kCUDA) return resample_cuda(resampling, x, out);
  resampling.run(x.raw_data(), out.raw_data());
}

bool lies_last(const Tensor& x) { return x.ndim() >= 4 && x.is_channels_last() && !x.is_contiguous(); }

void resample_backward(const ResampleRule& rule, const Tensor& g, Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor dense = lies_last(g) && out.is_channels_last() ? g : g.contiguous();
  const Resampling resampling = make_resampling(rule, out, dense);
  if (out.device().kind == kCUDA) return resample_backward_cuda(resampling, dense, out);
  resampling.run_transposed(out.raw_data(), dense.raw_data());
}

class ResampleCall final : public ops::PreparedCall {
 public:
  ResampleCall(Resampling resampling, double bytes) : resampling_(std::move(resampling)) {
    double taps = 1;
    for (const ResampleAxis& axis : resampling_.axes) taps *= static_cast<double>(axis.taps);
    const ResampleExtents& e = resampling_.extents;
    cost = {2 * taps * static_cast<double>(e.batch * e.channels * e.out_plane()), bytes};
  }
  void run(Context, const ops::PreparedRun& memory) const override {
    resampling_.run(memory.inputs[0], memory.outputs[0]);
  }

 private:
  Resampling resampling_;
};

// Built from `rule(the arguments after the input…)`.
template <class... Rest, size_t... I>
std::unique_ptr<ops::PreparedCall> prepare_resampling(ResampleRule (*rule)(Rest...), const ops::PrepareArgs& args,
                                                      std::index_sequence<I...>) {
  const Tensor &x = args.arguments[0].to_tensor(), &out = args.outputs[0];
  const bool has_order =
      (x.is_contiguous() && out.is_contiguous()) || (x.ndim() >= 4 && x.is_channels_last() && out.is_channels_last());
  if (!x.is_meta() || !has_order || out.numel() == 0) return nullptr;
  return std::make_unique<ResampleCall>(
      make_resampling(rule(ops::UnboxOf<std::decay_t<Rest>>::get(args.arguments[I + 1])...), x, out),
      static_cast<double>(x.size_bytes() + out.size_bytes()));
}
template <class... Rest>
ops::PrepareFn preparer(ResampleRule (*rule)(Rest...)) {
  return [rule](const ops::PrepareArgs& args) {
    return prepare_resampling(rule, args, std::make_index_sequence<sizeof...(Rest)>());
  };
}

// The four signatures: with and without align_corners, by size and by factors; the size is the result's. Scale is
// MaybeFloat, once per spatial dimension.
template <Mode kMode, class... Scale>
struct Sized {
  static ResampleRule plain(const IntList&, const Scale&... scales) { return {kMode, false, {scales...}}; }
  static void run(Context, const Tensor& x, const IntList& sizes, const Scale&... scales, Tensor& out) {
    resample(plain(sizes, scales...), x, out);
  }
  static void run_backward(Context, const Tensor& g, const IntList& sizes, const IntList&, const Scale&... scales,
                           Tensor& out) {
    resample_backward(plain(sizes, scales...), g, out);
  }
  static ResampleRule aligned(const IntList&, bool align, const Scale&... scales) {
    return {kMode, align, {scales...}};
  }
  static void run_aligned(Context, const Tensor& x, const IntList& sizes, bool align, const Scale&... scales,
                          Tensor& out) {
    resample(aligned(sizes, align, scales...), x, out);
  }
  static void run_aligned_backward(Context, const Tensor& g, const IntList& sizes, const IntList&, bool align,
                                   const Scale&... scales, Tensor& out) {
    resample_backward(aligned(sizes, align, scales...), g, out);
  }
};

template <Mode kMode, size_t kSpatial>
struct Factored {
  static ResampleRule plain(const MaybeInts& sizes, const MaybeFloats& factors) {
    return aligned(sizes, false, factors);
  }
  static void run(Context, const Tensor& x, const MaybeInts& sizes, const MaybeFloats& factors, Tensor& out) {
    resample(plain(sizes, factors), x, out);
  }
  static ResampleRule aligned(const MaybeInts&, bool align, const MaybeFloats& factors) {
    ResampleRule rule{kMode, align, std::vector<MaybeFloat>(kSpatial)};
    if (factors) rule.scales.assign(factors->begin(), factors->end());
    return rule;
  }
  static void run_aligned(Context, const Tensor& x, const MaybeInts& sizes, bool align, const MaybeFloats& factors,
                          Tensor& out) {
    resample(aligned(sizes, align, factors), x, out);
  }
};

using F = MaybeFloat;

#define NEAREST(NAME, MODE, SPATIAL, ...)                                                 \
  IMPL("aten::" NAME, kCPU, (&Sized<Mode::MODE, __VA_ARGS__>::run));                      \
  IMPL("aten::" NAME "_backward", kCPU, (&Sized<Mode::MODE, __VA_ARGS__>::run_backward)); \
  IMPL("aten::" NAME ".vec", kCPU, (&Factored<Mode::MODE, SPATIAL>::run));                \
  PREPARE("aten::" NAME, kCPU, preparer(&Sized<Mode::MODE, __VA_ARGS__>::plain));         \
  PREPARE("aten::" NAME ".vec", kCPU, preparer(&Factored<Mode::MODE, SPATIAL>::plain))
#define ALIGNED(NAME, MODE, SPATIAL, ...)                                                         \
  IMPL("aten::" NAME, kCPU, (&Sized<Mode::MODE, __VA_ARGS__>::run_aligned));                      \
  IMPL("aten::" NAME "_backward", kCPU, (&Sized<Mode::MODE, __VA_ARGS__>::run_aligned_backward)); \
  IMPL("aten::" NAME ".vec", kCPU, (&Factored<Mode::MODE, SPATIAL>::run_aligned));                \
  PREPARE("aten::" NAME, kCPU, preparer(&Sized<Mode::MODE, __VA_ARGS__>::aligned));               \
  PREPARE("aten::" NAME ".vec", kCPU, preparer(&Factored<Mode::MODE, SPATIAL>::aligned))

NEAREST("upsample_nearest1d", kNearest, 1, F);
NEAREST("upsample_nearest2d", kNearest, 2, F, F);
NEAREST("upsample_nearest3d", kNearest, 3, F, F, F);
NEAREST("_upsample_nearest_exact1d", kNearestExact, 1, F);
NEAREST("_upsample_nearest_exact2d", kNearestExact, 2, F, F);
NEAREST("_upsample_nearest_exact3d", kNearestExact, 3, F, F, F);
ALIGNED("upsample_linear1d", kLinear, 1, F);
ALIGNED("upsample_bilinear2d", kLinear, 2, F, F);
ALIGNED("upsample_trilinear3d", kLinear, 3, F, F, F);
ALIGNED("upsample_bicubic2d", kCubic, 2, F, F);
ALIGNED("_upsample_bilinear2d_aa", kLinearAntialias, 2, F, F);
ALIGNED("_upsample_bicubic2d_aa", kCubicAntialias, 2, F, F);

}  // namespace
}  // namespace tensord::kernels
