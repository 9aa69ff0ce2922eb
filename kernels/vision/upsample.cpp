// Upsampling (interpolate): schemas, shapes, and the taps and weights of each mode along one dimension;
// Resampling (upsample_cpu.cpp) does the rest for all of them.
#include "kernels/vision/upsample.h"

#include <cmath>
#include <optional>

#include "core/ops/samples.h"
#include "kernels/fused/gradient_expr.h"

namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::TensorMeta;
using Context = const ops::KernelContext&;
using MaybeInts = std::optional<IntList>;
using MaybeFloats = std::optional<std::vector<double>>;
using MaybeFloat = std::optional<double>;

enum class Mode { kNearest, kNearestExact, kLinear, kCubic, kLinearAntialias, kCubicAntialias };

// Of one axis; far more than any image needs.
constexpr int64_t kMostTaps = int64_t{1} << 26;

struct Request {
  Mode mode;
  size_t spatial;
  bool align_corners;
  Dims sizes;                      // of the output, spatial dimensions
  std::vector<MaybeFloat> scales;  // as given, one per spatial dimension
};

TensorMeta output_meta(const char* op, const Tensor& input, const Request& r) {
  check(static_cast<size_t>(input.ndim()) == r.spatial + 2, op, ": expected a ", r.spatial + 2,
        "-D input, but got sizes ", input.sizes());
  check(r.sizes.size() == r.spatial, op, ": expected output_size to have ", r.spatial, " entries, but got ",
        r.sizes.size());
  if (r.mode != Mode::kNearest && r.mode != Mode::kNearestExact) {
    check(is_floating(input.dtype()), op, ": not supported for ", name_of(input.dtype()));
  }
  Dims sizes{input.sizes()[0], input.sizes()[1]};
  for (size_t i = 0; i < r.spatial; ++i) {
    constexpr int64_t kMost = int64_t{1} << 24;
    check(input.sizes()[i + 2] > 0 && r.sizes[i] > 0 && r.sizes[i] <= kMost, op,
          ": Input and output sizes should be greater than 0, but got input ", input.sizes(), " output ",
          to_string(r.sizes));
    sizes.push_back(r.sizes[i]);
  }
  TensorMeta meta{sizes, input.dtype(), {}, input.device()};
  if (input.ndim() >= 4 && input.is_channels_last() && !input.is_contiguous())
    meta.strides = channels_last_strides(sizes);
  return meta;
}

// From the arguments of the ".vec" forms: a size, or factors.
Request from_factors(const char* op, Mode mode, size_t spatial, bool align_corners, const Tensor& input,
                     const MaybeInts& sizes, const MaybeFloats& factors) {
  check(sizes.has_value() != factors.has_value(), op, ": Must specify exactly one of output_size and scale_factors");
  Request r{mode, spatial, align_corners, {}, std::vector<MaybeFloat>(spatial)};
  if (sizes) {
    r.sizes = *sizes;
    return r;
  }
  check(factors->size() == spatial && static_cast<size_t>(input.ndim()) == spatial + 2, op, ": expected ", spatial,
        " scale factors for a ", spatial + 2, "-D input");
  for (size_t i = 0; i < spatial; ++i) {
    const double size = std::floor(static_cast<double>(input.sizes()[i + 2]) * (*factors)[i]);
    check(size >= 0 && size < 1e9, op, ": scale factor ", (*factors)[i], " is out of range");
    r.sizes.push_back(static_cast<int64_t>(size));
    r.scales[i] = (*factors)[i];
  }
  return r;
}

// C is the type that positions are computed in: PyTorch's rounding depends on it.
template <class C>
C step_of(const Request& r, size_t i, int64_t in, int64_t out) {
  if (r.align_corners) return out > 1 ? static_cast<C>(in - 1) / static_cast<C>(out - 1) : C(0);
  const MaybeFloat scale = r.scales[i];
  if (!scale || !(*scale > 0)) return static_cast<C>(in) / static_cast<C>(out);
  check(*scale > 1e-9, "upsample: scale factor ", *scale, " is out of range");  // positions must fit an int64
  return static_cast<C>(1.0 / *scale);
}

template <class C>
C position(const Request& r, C step, int64_t i) {
  if (r.align_corners) return step * static_cast<C>(i);
  return step * (static_cast<C>(i) + C(0.5)) - C(0.5);
}

void nearest_axis(const Request& r, size_t dim, int64_t in, ResampleAxis& axis) {
  const float step = step_of<float>(r, dim, in, r.sizes[dim]);
  const float shift = r.mode == Mode::kNearestExact ? 0.5f : 0.0f;
  for (int64_t i = 0; i < r.sizes[dim]; ++i) {
    axis.index.push_back(std::min(static_cast<int64_t>(std::floor((static_cast<float>(i) + shift) * step)), in - 1));
    axis.weight.push_back(1);
  }
}

template <class C>
void linear_axis(const Request& r, size_t dim, int64_t in, ResampleAxis& axis) {
  axis.taps = 2;
  const C step = step_of<C>(r, dim, in, r.sizes[dim]);
  for (int64_t i = 0; i < r.sizes[dim]; ++i) {
    const C at = std::max(position(r, step, i), C(0));
    const int64_t low = std::min(static_cast<int64_t>(at), in - 1);
    const C part = std::min(std::max(at - static_cast<C>(low), C(0)), C(1));
    axis.index.insert(axis.index.end(), {low, low + (low < in - 1 ? 1 : 0)});
    axis.weight.insert(axis.weight.end(), {static_cast<double>(C(1) - part), static_cast<double>(part)});
  }
}

// The cubic convolution kernel with a = -0.75 at distances 1 + t, t, 1 - t, 2 - t.
template <class C>
void cubic_axis(const Request& r, size_t dim, int64_t in, ResampleAxis& axis) {
  axis.taps = 4;
  const C step = step_of<C>(r, dim, in, r.sizes[dim]), a = C(-0.75);
  const auto near = [a](C x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [a](C x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  for (int64_t i = 0; i < r.sizes[dim]; ++i) {
    const C at = position(r, step, i);
    const C base = std::floor(at), t = std::min(std::max(at - base, C(0)), C(1));
    const C weights[] = {far(t + 1), near(t), near(1 - t), far(2 - t)};
    for (int64_t k = 0; k < 4; ++k) {
      axis.index.push_back(std::clamp<int64_t>(static_cast<int64_t>(base) - 1 + k, 0, in - 1));
      axis.weight.push_back(static_cast<double>(weights[k]));
    }
  }
}

// Pillow's filters, at a distance from the centre in pixels of the coarser image.
template <class C>
C antialias_weight(bool is_cubic, C distance) {
  const C x = std::abs(distance), a = C(-0.5);
  if (!is_cubic) return x < 1 ? 1 - x : C(0);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : C(0);
}

// Where an image becomes smaller, a filter is as much wider as the image becomes smaller; its weights sum to 1.
template <class C>
void antialias_axis(const Request& r, size_t dim, int64_t in, ResampleAxis& axis) {
  const bool is_cubic = r.mode == Mode::kCubicAntialias;
  const int64_t out = r.sizes[dim];
  const C step = step_of<C>(r, dim, in, out), stretch = std::max(step, C(1)), support = C(is_cubic ? 2 : 1) * stretch;
  const auto pixel = [in](C at) { return static_cast<int64_t>(std::clamp(at, C(0), static_cast<C>(in))); };
  axis.taps = static_cast<int64_t>(std::min(std::ceil(support) * 2 + 1, static_cast<C>(in)));
  check(out <= kMostTaps / axis.taps, "upsample: a scale factor is out of range");
  for (int64_t i = 0; i < out; ++i) {
    const C centre = step * (static_cast<C>(i) + C(0.5));
    const int64_t first = pixel(centre - support + C(0.5)), last = pixel(centre + support + C(0.5));
    std::vector<C> weights(static_cast<size_t>(axis.taps), C(0));
    C total = 0;
    for (int64_t k = 0; k < std::min(last - first, axis.taps); ++k) {
      weights[k] = antialias_weight(is_cubic, (static_cast<C>(k + first) - centre + C(0.5)) / stretch);
      total += weights[k];
    }
    for (int64_t k = 0; k < axis.taps; ++k) {
      axis.index.push_back(std::min(first + k, in - 1));
      axis.weight.push_back(static_cast<double>(total != 0 ? weights[k] / total : weights[k]));
    }
  }
}

Resampling make_resampling(const Request& r, const Tensor& input, const Tensor& out) {
  std::array<ResampleAxis, 3> axes;
  const size_t lead = 3 - r.spatial;
  for (size_t i = 0; i < lead; ++i) axes[i] = {1, {0}, {1}};
  const bool is_double = input.dtype() == DType::kFloat64;
  for (size_t i = 0; i < r.spatial; ++i) {
    const int64_t in = input.sizes()[i + 2];
    ResampleAxis& axis = axes[lead + i];
    switch (r.mode) {
      case Mode::kNearest:
      case Mode::kNearestExact: nearest_axis(r, i, in, axis); break;
      case Mode::kLinear: is_double ? linear_axis<double>(r, i, in, axis) : linear_axis<float>(r, i, in, axis); break;
      case Mode::kLinearAntialias:
      case Mode::kCubicAntialias:
        is_double ? antialias_axis<double>(r, i, in, axis) : antialias_axis<float>(r, i, in, axis);
        break;
      case Mode::kCubic: is_double ? cubic_axis<double>(r, i, in, axis) : cubic_axis<float>(r, i, in, axis); break;
    }
  }
  return {std::move(axes), r.spatial, input, out};
}

void run(const Request& r, const Tensor& input, Tensor& out) {
  if (out.numel() == 0) return;
  const bool has_order = input.ndim() >= 4 && input.is_channels_last() && out.is_channels_last();
  const Tensor x = has_order ? input : input.contiguous();
  make_resampling(r, x, out).run(x.raw_data(), out.raw_data());
}

// --- gradients

bool lies_last(const Tensor& x) { return x.ndim() >= 4 && x.is_channels_last() && !x.is_contiguous(); }

// Of a backward operator: the shape of the forward's input, in the memory order of g.
TensorMeta backward_meta(const Tensor& g, const IntList& input_sizes, const Request& r) {
  check(input_sizes.size() == r.spatial + 2, "upsample: It is expected input_size equals to ", r.spatial + 2,
        ", but got size ", input_sizes.size());
  checked_numel(input_sizes);
  const TensorMeta forward = output_meta("upsample", Tensor::meta(input_sizes, g.dtype()), r);
  check(forward.sizes == g.sizes(), "upsample: Expected grad_output to have the shape ", to_string(forward.sizes),
        " but got ", g.sizes());
  return {input_sizes, g.dtype(), lies_last(g) ? channels_last_strides(input_sizes) : Dims(), g.device()};
}
void run_backward(const Request& r, const Tensor& g, Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor dense = lies_last(g) && out.is_channels_last() ? g : g.contiguous();
  make_resampling(r, out, dense).run_transposed(out.raw_data(), dense.raw_data());
}

using ops::GradArgs;
using ops::Value;

Tensor call_with(const std::string& op, std::vector<Value> arguments) {
  return ops::run(ops::get_op(op), arguments).at(0).to_tensor();
}
// Of "name" and "name.vec" by "name_backward", of that by "name".
gradient::GradientFn forward_gradient(std::string name) {
  return gradient::of_first([name](const GradArgs& args, const Tensor& g) {
    std::vector<Value> arguments{g, args.inputs[1], ops::make_int_list(gradient::sizes_of(args, 0))};
    arguments.insert(arguments.end(), args.inputs.begin() + 2, args.inputs.end());
    return call_with(name + "_backward", std::move(arguments));
  });
}
gradient::GradientFn backward_gradient(std::string name) {
  return gradient::of_first([name](const GradArgs& args, const Tensor& g) {
    std::vector<Value> arguments{g, args.inputs[1]};
    arguments.insert(arguments.end(), args.inputs.begin() + 3, args.inputs.end());
    return call_with(name, std::move(arguments));
  });
}
gradient::GradientFn factored_gradient(std::string name, Mode mode, size_t spatial, bool has_corners) {
  return gradient::of_first([=](const GradArgs& args, const Tensor& g) {
    const Tensor& x = args.inputs[0].to_tensor();
    const auto sizes = ops::Unbox<MaybeInts>::get(args.inputs[1]);
    const auto factors = ops::Unbox<MaybeFloats>::get(args.inputs.back());
    const Request r = from_factors("upsample", mode, spatial, false, x, sizes, factors);
    std::vector<Value> arguments{g, ops::make_int_list(r.sizes), ops::make_int_list(x.sizes())};
    if (has_corners) arguments.push_back(args.inputs[2]);
    for (const MaybeFloat& scale : r.scales) arguments.emplace_back(scale);
    return call_with(name + "_backward", std::move(arguments));
  });
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

// From `request(input, the other arguments…)`.
template <class... Rest, size_t... I>
std::unique_ptr<ops::PreparedCall> prepare_resampling(Request (*request)(const Tensor&, Rest...),
                                                      const ops::PrepareArgs& args, std::index_sequence<I...>) {
  const Tensor &x = args.arguments[0].to_tensor(), &out = args.outputs[0];
  const bool has_order =
      (x.is_contiguous() && out.is_contiguous()) || (x.ndim() >= 4 && x.is_channels_last() && out.is_channels_last());
  if (!x.is_meta() || !has_order || out.numel() == 0) return nullptr;
  const Request r = request(x, ops::UnboxOf<std::decay_t<Rest>>::get(args.arguments[I + 1])...);
  return std::make_unique<ResampleCall>(make_resampling(r, x, out),
                                        static_cast<double>(x.size_bytes() + out.size_bytes()));
}
template <class... Rest>
ops::PrepareFn preparer(Request (*request)(const Tensor&, Rest...)) {
  return [request](const ops::PrepareArgs& args) {
    return prepare_resampling(request, args, std::make_index_sequence<sizeof...(Rest)>());
  };
}

// The four signatures: with and without align_corners, by size and by factors. Scale is MaybeFloat, once per
// spatial dimension.
template <Mode kMode, class... Scale>
struct Sized {
  static constexpr size_t kSpatial = sizeof...(Scale);
  static Request request(bool align, const IntList& sizes, const Scale&... scales) {
    return {kMode, kSpatial, align, sizes.size() == 1 ? Dims(kSpatial, sizes[0]) : sizes, {scales...}};
  }
  static Request plain(const Tensor&, const IntList& sizes, const Scale&... scales) {
    return request(false, sizes, scales...);
  }
  static TensorMeta infer(const Tensor& x, const IntList& sizes, const Scale&... scales) {
    return output_meta("upsample", x, plain(x, sizes, scales...));
  }
  static void run(Context, const Tensor& x, const IntList& sizes, const Scale&... scales, Tensor& out) {
    kernels::run(plain(x, sizes, scales...), x, out);
  }
  static TensorMeta infer_backward(const Tensor& g, const IntList& sizes, const IntList& in, const Scale&... scales) {
    return backward_meta(g, in, request(false, sizes, scales...));
  }
  static void run_backward(Context, const Tensor& g, const IntList& sizes, const IntList&, const Scale&... scales,
                           Tensor& out) {
    kernels::run_backward(request(false, sizes, scales...), g, out);
  }
  static Request aligned(const Tensor&, const IntList& sizes, bool align, const Scale&... scales) {
    return request(align, sizes, scales...);
  }
  static TensorMeta infer_aligned_backward(const Tensor& g, const IntList& sizes, const IntList& in, bool align,
                                           const Scale&... scales) {
    return backward_meta(g, in, request(align, sizes, scales...));
  }
  static void run_aligned_backward(Context, const Tensor& g, const IntList& sizes, const IntList&, bool align,
                                   const Scale&... scales, Tensor& out) {
    kernels::run_backward(request(align, sizes, scales...), g, out);
  }
  static TensorMeta infer_aligned(const Tensor& x, const IntList& sizes, bool align, const Scale&... scales) {
    return output_meta("upsample", x, aligned(x, sizes, align, scales...));
  }
  static void run_aligned(Context, const Tensor& x, const IntList& sizes, bool align, const Scale&... scales,
                          Tensor& out) {
    kernels::run(aligned(x, sizes, align, scales...), x, out);
  }
};

template <Mode kMode, size_t kSpatial>
struct Factored {
  static Request plain(const Tensor& x, const MaybeInts& sizes, const MaybeFloats& factors) {
    return from_factors("upsample", kMode, kSpatial, false, x, sizes, factors);
  }
  static TensorMeta infer(const Tensor& x, const MaybeInts& sizes, const MaybeFloats& factors) {
    return output_meta("upsample", x, plain(x, sizes, factors));
  }
  static void run(Context, const Tensor& x, const MaybeInts& sizes, const MaybeFloats& factors, Tensor& out) {
    kernels::run(plain(x, sizes, factors), x, out);
  }
  static Request aligned(const Tensor& x, const MaybeInts& sizes, bool align, const MaybeFloats& factors) {
    return from_factors("upsample", kMode, kSpatial, align, x, sizes, factors);
  }
  static TensorMeta infer_aligned(const Tensor& x, const MaybeInts& sizes, bool align, const MaybeFloats& factors) {
    return output_meta("upsample", x, aligned(x, sizes, align, factors));
  }
  static void run_aligned(Context, const Tensor& x, const MaybeInts& sizes, bool align, const MaybeFloats& factors,
                          Tensor& out) {
    kernels::run(aligned(x, sizes, align, factors), x, out);
  }
};

using F = MaybeFloat;
constexpr auto kCPU = DeviceKind::kCPU;

#define NEAREST(NAME, MODE, SPATIAL, RANK, SCALES, ...)                                                              \
  OP("aten::" NAME "(Tensor self, int[" #SPATIAL "] output_size, " SCALES ") -> Tensor")                             \
      .infer(&Sized<Mode::MODE, __VA_ARGS__>::infer)                                                                 \
      .set<ops::KeepsSamples>(ops::always_keeps_samples)                                                             \
      .gradient(forward_gradient("aten::" NAME))                                                                     \
      .saves("")                                                                                                     \
      .keeps_layout()                                                                                                \
      .with_out();                                                                                                   \
  OP("aten::" NAME "_backward(Tensor grad_output, int[" #SPATIAL "] output_size, int[" #RANK "] input_size, " SCALES \
     ") -> Tensor")                                                                                                  \
      .infer(&Sized<Mode::MODE, __VA_ARGS__>::infer_backward)                                                        \
      .gradient(backward_gradient("aten::" NAME))                                                                    \
      .saves("")                                                                                                     \
      .keeps_layout();                                                                                               \
  OP("aten::" NAME ".vec(Tensor input, int[]? output_size, float[]? scale_factors) -> Tensor")                       \
      .infer(&Factored<Mode::MODE, SPATIAL>::infer)                                                                  \
      .set<ops::KeepsSamples>(ops::always_keeps_samples)                                                             \
      .gradient(factored_gradient("aten::" NAME, Mode::MODE, SPATIAL, false))                                        \
      .saves("")                                                                                                     \
      .keeps_layout()                                                                                                \
      .with_out();                                                                                                   \
  KERNEL("aten::" NAME, kCPU, (&Sized<Mode::MODE, __VA_ARGS__>::run));                                               \
  KERNEL("aten::" NAME "_backward", kCPU, (&Sized<Mode::MODE, __VA_ARGS__>::run_backward));                          \
  KERNEL("aten::" NAME ".vec", kCPU, (&Factored<Mode::MODE, SPATIAL>::run));                                         \
  PREPARE("aten::" NAME, kCPU, preparer(&Sized<Mode::MODE, __VA_ARGS__>::plain));                                    \
  PREPARE("aten::" NAME ".vec", kCPU, preparer(&Factored<Mode::MODE, SPATIAL>::plain))
#define ALIGNED(NAME, MODE, SPATIAL, RANK, SCALES, ...)                                                            \
  OP("aten::" NAME "(Tensor self, int[" #SPATIAL "] output_size, bool align_corners, " SCALES ") -> Tensor")       \
      .infer(&Sized<Mode::MODE, __VA_ARGS__>::infer_aligned)                                                       \
      .set<ops::KeepsSamples>(ops::always_keeps_samples)                                                           \
      .gradient(forward_gradient("aten::" NAME))                                                                   \
      .saves("")                                                                                                   \
      .keeps_layout()                                                                                              \
      .with_out();                                                                                                 \
  OP("aten::" NAME "_backward(Tensor grad_output, int[" #SPATIAL "] output_size, int[" #RANK                       \
     "] input_size, bool align_corners, " SCALES ") -> Tensor")                                                    \
      .infer(&Sized<Mode::MODE, __VA_ARGS__>::infer_aligned_backward)                                              \
      .gradient(backward_gradient("aten::" NAME))                                                                  \
      .saves("")                                                                                                   \
      .keeps_layout();                                                                                             \
  OP("aten::" NAME ".vec(Tensor input, int[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor") \
      .infer(&Factored<Mode::MODE, SPATIAL>::infer_aligned)                                                        \
      .set<ops::KeepsSamples>(ops::always_keeps_samples)                                                           \
      .gradient(factored_gradient("aten::" NAME, Mode::MODE, SPATIAL, true))                                       \
      .saves("")                                                                                                   \
      .keeps_layout()                                                                                              \
      .with_out();                                                                                                 \
  KERNEL("aten::" NAME, kCPU, (&Sized<Mode::MODE, __VA_ARGS__>::run_aligned));                                     \
  KERNEL("aten::" NAME "_backward", kCPU, (&Sized<Mode::MODE, __VA_ARGS__>::run_aligned_backward));                \
  KERNEL("aten::" NAME ".vec", kCPU, (&Factored<Mode::MODE, SPATIAL>::run_aligned));                               \
  PREPARE("aten::" NAME, kCPU, preparer(&Sized<Mode::MODE, __VA_ARGS__>::aligned));                                \
  PREPARE("aten::" NAME ".vec", kCPU, preparer(&Factored<Mode::MODE, SPATIAL>::aligned))

#define SCALES1 "float? scales=None"
#define SCALES2 "float? scales_h=None, float? scales_w=None"
#define SCALES3 "float? scales_d=None, float? scales_h=None, float? scales_w=None"
NEAREST("upsample_nearest1d", kNearest, 1, 3, SCALES1, F);
NEAREST("upsample_nearest2d", kNearest, 2, 4, SCALES2, F, F);
NEAREST("upsample_nearest3d", kNearest, 3, 5, SCALES3, F, F, F);
NEAREST("_upsample_nearest_exact1d", kNearestExact, 1, 3, SCALES1, F);
NEAREST("_upsample_nearest_exact2d", kNearestExact, 2, 4, SCALES2, F, F);
NEAREST("_upsample_nearest_exact3d", kNearestExact, 3, 5, SCALES3, F, F, F);
ALIGNED("upsample_linear1d", kLinear, 1, 3, SCALES1, F);
ALIGNED("upsample_bilinear2d", kLinear, 2, 4, SCALES2, F, F);
ALIGNED("upsample_trilinear3d", kLinear, 3, 5, SCALES3, F, F, F);
ALIGNED("upsample_bicubic2d", kCubic, 2, 4, SCALES2, F, F);
ALIGNED("_upsample_bilinear2d_aa", kLinearAntialias, 2, 4, SCALES2, F, F);
ALIGNED("_upsample_bicubic2d_aa", kCubicAntialias, 2, 4, SCALES2, F, F);

}  // namespace
}  // namespace tensord::kernels
