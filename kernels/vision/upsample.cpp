// Upsampling (interpolate): schemas, shapes and gradients.
#include "kernels/vision/upsample.h"

#include <cmath>
#include <optional>

#include "core/ops/attributes/batch_independence.h"
#include "core/ops/attributes/written.h"
#include "kernels/expr/expr.h"

namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::TensorMeta;
using ops::WritesInto;
using Mode = ResampleMode;
using MaybeInts = std::optional<IntList>;
using MaybeFloats = std::optional<std::vector<double>>;
using MaybeFloat = std::optional<double>;

struct Request {
  Mode mode;
  size_t spatial;
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
    constexpr int64_t kMax = int64_t{1} << 24;
    check(input.sizes()[i + 2] > 0 && r.sizes[i] > 0 && r.sizes[i] <= kMax, op,
          ": Input and output sizes should be greater than 0, but got input ", input.sizes(), " output ",
          to_string(r.sizes));
    sizes.push_back(r.sizes[i]);
  }
  TensorMeta meta{sizes, input.dtype(), {}, input.device()};
  if (input.ndim() >= 4 && input.is_channels_last() && !input.is_contiguous())
    meta.strides = channels_last_strides(sizes);
  return meta;
}

// From the arguments of the ".vec" overloads: a size, or factors.
Request from_factors(const char* op, Mode mode, size_t spatial, const Tensor& input, const MaybeInts& sizes,
                     const MaybeFloats& factors) {
  check(sizes.has_value() != factors.has_value(), op, ": Must specify exactly one of output_size and scale_factors");
  Request r{mode, spatial, {}, std::vector<MaybeFloat>(spatial)};
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

// --- gradients

bool lies_last(const Tensor& x) { return x.ndim() >= 4 && x.is_channels_last() && !x.is_contiguous(); }

// The result of a backward operator: the shape of the forward's input, in the memory order of g.
TensorMeta backward_meta(const Tensor& g, const IntList& input_sizes, const Request& r) {
  check(input_sizes.size() == r.spatial + 2, "upsample: It is expected input_size equals to ", r.spatial + 2,
        ", but got size ", input_sizes.size());
  checked_numel(input_sizes);
  const TensorMeta forward = output_meta("upsample", Tensor::meta(input_sizes, g.dtype()), r);
  check(forward.sizes == g.sizes(), "upsample: Expected grad_output to have the shape ", to_string(forward.sizes),
        " but got ", g.sizes());
  return {input_sizes, g.dtype(), lies_last(g) ? channels_last_strides(input_sizes) : Dims(), g.device()};
}

using ops::GradArgs;
using ops::Value;

Tensor call_with(const std::string& op, std::vector<Value> arguments) {
  return ops::run(ops::get_op(op), arguments).at(0).to_tensor();
}
// The gradient of "name" and "name.vec" is "name_backward", whose own gradient is "name".
gradient::GradientFn forward_gradient(const char* name) {
  return gradient::of_first([name](const GradArgs& args, const Tensor& g) {
    std::vector<Value> arguments{g, args.inputs[1], ops::make_int_list(gradient::sizes_of(args, 0))};
    arguments.insert(arguments.end(), args.inputs.begin() + 2, args.inputs.end());
    return call_with(concat(name, "_backward"), std::move(arguments));
  });
}
gradient::GradientFn backward_gradient(const char* name) {
  return gradient::of_first([name](const GradArgs& args, const Tensor& g) {
    std::vector<Value> arguments{g, args.inputs[1]};
    arguments.insert(arguments.end(), args.inputs.begin() + 3, args.inputs.end());
    return call_with(name, std::move(arguments));
  });
}
gradient::GradientFn factored_gradient(const char* name, Mode mode, size_t spatial, bool has_corners) {
  return gradient::of_first([=](const GradArgs& args, const Tensor& g) {
    const Tensor& x = args.inputs[0].to_tensor();
    const auto sizes = ops::Unbox<MaybeInts>::get(args.inputs[1]);
    const auto factors = ops::Unbox<MaybeFloats>::get(args.inputs.back());
    const Request r = from_factors("upsample", mode, spatial, x, sizes, factors);
    std::vector<Value> arguments{g, ops::make_int_list(r.sizes), ops::make_int_list(x.sizes())};
    if (has_corners) arguments.push_back(args.inputs[2]);
    for (const MaybeFloat& scale : r.scales) arguments.emplace_back(scale);
    return call_with(concat(name, "_backward"), std::move(arguments));
  });
}

// The four signatures: with and without align_corners, by size and by factors. Scale is MaybeFloat, once per
// spatial dimension.
template <Mode kMode, class... Scale>
struct Sized {
  static constexpr size_t kSpatial = sizeof...(Scale);
  static Request request(const IntList& sizes, const Scale&... scales) {
    return {kMode, kSpatial, sizes.size() == 1 ? Dims(kSpatial, sizes[0]) : sizes, {scales...}};
  }
  static TensorMeta infer(const Tensor& x, const IntList& sizes, const Scale&... scales) {
    return output_meta("upsample", x, request(sizes, scales...));
  }
  static TensorMeta infer_backward(const Tensor& g, const IntList& sizes, const IntList& in, const Scale&... scales) {
    return backward_meta(g, in, request(sizes, scales...));
  }
  static TensorMeta infer_aligned_backward(const Tensor& g, const IntList& sizes, const IntList& in, bool,
                                           const Scale&... scales) {
    return backward_meta(g, in, request(sizes, scales...));
  }
  static TensorMeta infer_aligned(const Tensor& x, const IntList& sizes, bool, const Scale&... scales) {
    return output_meta("upsample", x, request(sizes, scales...));
  }
};

template <Mode kMode, size_t kSpatial>
struct Factored {
  static Request request(const Tensor& x, const MaybeInts& sizes, const MaybeFloats& factors) {
    return from_factors("upsample", kMode, kSpatial, x, sizes, factors);
  }
  static TensorMeta infer(const Tensor& x, const MaybeInts& sizes, const MaybeFloats& factors) {
    return output_meta("upsample", x, request(x, sizes, factors));
  }
  static TensorMeta infer_aligned(const Tensor& x, const MaybeInts& sizes, bool, const MaybeFloats& factors) {
    return output_meta("upsample", x, request(x, sizes, factors));
  }
};

using F = MaybeFloat;

#define NEAREST(NAME, MODE, SPATIAL, ...)                                     \
  OP("aten::" NAME)                                                           \
      .infer(&Sized<Mode::MODE, __VA_ARGS__>::infer)                          \
      .set<ops::BatchIndependent>(ops::always_batch_independent)              \
      .gradient(forward_gradient("aten::" NAME))                              \
      .saves("")                                                              \
      .keeps_layout()                                                         \
      .set<WritesInto>(WritesInto::kSameDType);                               \
  OP("aten::" NAME "_backward")                                               \
      .infer(&Sized<Mode::MODE, __VA_ARGS__>::infer_backward)                 \
      .gradient(backward_gradient("aten::" NAME))                             \
      .saves("")                                                              \
      .keeps_layout();                                                        \
  OP("aten::" NAME ".vec")                                                    \
      .infer(&Factored<Mode::MODE, SPATIAL>::infer)                           \
      .set<ops::BatchIndependent>(ops::always_batch_independent)              \
      .gradient(factored_gradient("aten::" NAME, Mode::MODE, SPATIAL, false)) \
      .saves("")                                                              \
      .keeps_layout()
#define ALIGNED(NAME, MODE, SPATIAL, ...)                                    \
  OP("aten::" NAME)                                                          \
      .infer(&Sized<Mode::MODE, __VA_ARGS__>::infer_aligned)                 \
      .set<ops::BatchIndependent>(ops::always_batch_independent)             \
      .gradient(forward_gradient("aten::" NAME))                             \
      .saves("")                                                             \
      .keeps_layout()                                                        \
      .set<WritesInto>(WritesInto::kSameDType);                              \
  OP("aten::" NAME "_backward")                                              \
      .infer(&Sized<Mode::MODE, __VA_ARGS__>::infer_aligned_backward)        \
      .gradient(backward_gradient("aten::" NAME))                            \
      .saves("")                                                             \
      .keeps_layout();                                                       \
  OP("aten::" NAME ".vec")                                                   \
      .infer(&Factored<Mode::MODE, SPATIAL>::infer_aligned)                  \
      .set<ops::BatchIndependent>(ops::always_batch_independent)             \
      .gradient(factored_gradient("aten::" NAME, Mode::MODE, SPATIAL, true)) \
      .saves("")                                                             \
      .keeps_layout()

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
