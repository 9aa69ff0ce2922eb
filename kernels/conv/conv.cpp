// Convolutions: schemas and shapes. The kernels are in conv_cpu.cpp.
#include "kernels/conv/conv.h"

#include "core/ops/attributes/batch_independence.h"
#include "core/ops/attributes/rank.h"
#include "core/ops/op.h"
#include "kernels/conv/conv_gradient.h"
#include "kernels/conv/packed_conv.h"

namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::TensorMeta;

size_t spatial_of(const Dims& weight) {
  check(weight.size() >= 3 && weight.size() <= 5, "expected a convolution's weight to have 3 to 5 dimensions, but got ",
        weight.size());
  return weight.size() - 2;
}

Dims repeated(const Dims& list, size_t count, const char* name) {
  if (list.size() == 1 && count != 1) return Dims(count, list[0]);
  check(list.size() == count, "expected ", name, " to be a single integer value or a list of ", count,
        " values, but got ", name, "=", to_string(list));
  return list;
}

std::string with_x(std::span<const int64_t> dims) {
  std::string text;
  for (const int64_t d : dims) text += (text.empty() ? "" : " x ") + std::to_string(d);
  return "(" + text + ")";
}

void check_input(const char* op, const Dims& input, const Dims& weight, const ConvGeometry& g) {
  const size_t n = g.spatial();
  check(weight.size() == n + 2, "expected ", n + 2, "-dimensional weight for ", n,
        "D convolution, but got weight of size ", to_string(weight));
  check(input.size() == n + 1 || input.size() == n + 2, "Expected ", n + 1, "D (unbatched) or ", n + 2,
        "D (batched) input to ", op, ", but got input of size: ", to_string(input));
  const int64_t channels = input[input.size() - n - 1];
  const int64_t expected = g.is_transposed ? weight[0] : weight[1];
  check(g.groups > 0, "non-positive groups is not supported");
  check(weight[0] >= g.groups, "Given groups=", g.groups, ", expected weight to be at least ", g.groups,
        " at dimension 0, but got weight of size ", to_string(weight), " instead");
  check(weight[0] % g.groups == 0, "Given groups=", g.groups, ", expected weight to be divisible by ", g.groups,
        " at dimension 0, but got weight of size ", to_string(weight), " instead");
  const bool agrees =
      g.is_transposed ? channels == expected : expected <= INT64_MAX / g.groups && channels == expected * g.groups;
  check(agrees, "Given ", g.is_transposed ? "transposed=1" : "groups=" + std::to_string(g.groups), ", weight of size ",
        to_string(weight), ", expected input", to_string(input), " to have ",
        g.is_transposed ? expected : expected * g.groups, " channels, but got ", channels, " channels instead");
}

constexpr int64_t kMaxExtent = int64_t{1} << 40;  // keeps the shape arithmetic below far from overflow

}  // namespace

ConvGeometry make_conv_geometry(size_t spatial, const Dims& stride, const Dims& padding, const Dims& dilation,
                                int64_t groups, bool is_transposed, const Dims& output_padding) {
  ConvGeometry g;
  g.stride = repeated(stride, spatial, "stride");
  g.padding_low = g.padding_high = repeated(padding, spatial, "padding");
  g.dilation = repeated(dilation, spatial, "dilation");
  g.output_padding = is_transposed ? repeated(output_padding, spatial, "output_padding") : Dims(spatial, 0);
  g.groups = groups;
  g.is_transposed = is_transposed;
  for (size_t i = 0; i < spatial; ++i) {
    check(g.padding_low[i] >= 0, "negative padding is not supported");
    check(g.output_padding[i] >= 0, "negative output_padding is not supported");
    check(g.stride[i] > 0, "non-positive stride is not supported");
    check(g.dilation[i] > 0, "dilation should be greater than zero");
    check(std::max({g.padding_low[i], g.output_padding[i], g.stride[i], g.dilation[i]}) < (int64_t{1} << 30),
          "stride, padding or dilation is too large");
  }
  return g;
}

ConvGeometry make_conv_geometry(const Dims& weight, const Dims& stride, const std::string& padding,
                                const Dims& dilation, int64_t groups) {
  ConvGeometry g = make_conv_geometry(spatial_of(weight), stride, Dims{0}, dilation, groups);
  if (padding == "valid") return g;
  check(padding == "same", "Invalid padding string: '", padding, "'");
  for (size_t i = 0; i < g.spatial(); ++i) {
    check(g.stride[i] == 1, "padding='same' is not supported for strided convolutions");
    const int64_t total = g.dilation[i] * (weight[i + 2] - 1);
    g.padding_low[i] = total / 2;
    g.padding_high[i] = total - total / 2;
  }
  return g;
}

Dims conv_output_sizes(const char* op, const Dims& input, const Dims& weight, const ConvGeometry& g) {
  check_input(op, input, weight, g);
  const size_t n = g.spatial(), first = input.size() - n;
  Dims out = input, padded(n, 0);
  out[first - 1] = g.is_transposed ? weight[1] * g.groups : weight[0];
  bool fits = true;
  for (size_t i = 0; i < n; ++i) {
    const int64_t in = input[first + i], kernel = weight[i + 2];
    check(kernel > 0, "non-positive kernel size is not supported");
    check(in < kMaxExtent && kernel < (int64_t{1} << 31), op, ": sizes are too large: ", to_string(input));
    const int64_t extent = g.dilation[i] * (kernel - 1) + 1;
    const int64_t pads = g.padding_low[i] + g.padding_high[i];
    padded[i] = in + pads;
    if (g.is_transposed) {
      check(g.output_padding[i] < std::max(g.stride[i], g.dilation[i]),
            "output padding must be smaller than either stride or dilation, but got output_padding ",
            to_string(g.output_padding));
      check(in < (int64_t{1} << 31), op, ": sizes are too large: ", to_string(input));
      out[first + i] = (in - 1) * g.stride[i] - pads + extent + g.output_padding[i];
      check(out[first + i] >= 0, "Given input size per channel: ", with_x(input.span().subspan(first)),
            ". Calculated output size per channel would be negative. Output size is too small");
    } else {
      fits = fits && padded[i] >= extent;
      out[first + i] = fits ? (padded[i] - extent) / g.stride[i] + 1 : 0;
    }
  }
  check(fits, "Calculated padded input size per channel: ", with_x(padded),
        ". Kernel size: ", with_x(weight.span().subspan(2)), ". Kernel size can't be greater than actual input size");
  const auto pixels = input.span().subspan(first);
  const bool has_samples = input[first - 1] != 0 && (input.size() < n + 2 || input[0] != 0);
  check(!has_samples || std::ranges::count(pixels, 0) == 0,
        "Only zero batch or zero channel inputs are supported, but got input shape: ", to_string(input));
  return out;
}

void check_conv_bias(const Dims& weight, const Dims& bias, const ConvGeometry& g) {
  const int64_t channels = g.is_transposed ? weight[1] * g.groups : weight[0];
  check(bias.size() == 1 && bias[0] == channels, "Given ", g.is_transposed ? "transposed=1, " : "", "weight of size ",
        to_string(weight), ", expected bias to be 1-dimensional with ", channels, " elements, but got bias of size ",
        to_string(bias), " instead");
}

namespace {

TensorMeta infer_conv(const char* op, const ConvGeometry& g, const Tensor& input, const Tensor& weight,
                      const std::optional<Tensor>& bias) {
  const Dims sizes = conv_output_sizes(op, input.sizes(), weight.sizes(), g);
  check(input.dtype() == weight.dtype(), "Input type (", name_of(input.dtype()), ") and weight type (",
        name_of(weight.dtype()), ") should be the same");
  if (bias) {
    check_conv_bias(weight.sizes(), bias->sizes(), g);
    check(bias->dtype() == input.dtype(), "Input type (", name_of(input.dtype()), ") and bias type (",
          name_of(bias->dtype()), ") should be the same");
  }
  TensorMeta meta{sizes, input.dtype(), {}, input.device()};
  // As in PyTorch, the result is channels_last if the input or the weight is.
  const bool can_be_last = sizes.size() == g.spatial() + 2 && g.spatial() >= 2;
  const auto is_last = [](const Tensor& t) { return t.is_channels_last() && !t.is_contiguous(); };
  if (can_be_last && (is_last(input) || is_last(weight))) meta.strides = channels_last_strides(sizes);
  return meta;
}

const char* op_name(size_t spatial, bool is_transposed) {
  static constexpr const char* kNames[2][3] = {{"conv1d", "conv2d", "conv3d"},
                                               {"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"}};
  return kNames[is_transposed][spatial - 1];
}

using MaybeTensor = std::optional<Tensor>;
using Context = const ops::KernelContext&;
using PackedPtr = IntrusivePtr<ops::PackedOp>;

Dims ints(const ops::Value& v) { return ops::Unbox<IntList>::get(v); }

// Each signature has one function that turns its arguments into a geometry; both infer and the kernel use it.
template <size_t kSpatial>
struct Conv {
  static ConvGeometry geometry(const IntList& stride, const IntList& padding, const IntList& dilation, int64_t groups) {
    return make_conv_geometry(kSpatial, stride, padding, dilation, groups);
  }
  static PackedPtr pack(const ops::PackArgs& args) {
    const auto v = args.arguments;
    return pack_conv(args, geometry(ints(v[3]), ints(v[4]), ints(v[5]), v[6].to_int()));
  }
  static std::vector<Tensor> gradient(const ops::GradArgs& args) {
    const auto& v = args.inputs;
    return conv_gradient(args, geometry(ints(v[3]), ints(v[4]), ints(v[5]), v[6].to_int()));
  }
  static TensorMeta infer(const Tensor& input, const Tensor& weight, const MaybeTensor& bias, const IntList& stride,
                          const IntList& padding, const IntList& dilation, int64_t groups) {
    return infer_conv(op_name(kSpatial, false), geometry(stride, padding, dilation, groups), input, weight, bias);
  }
  static void run(Context, const Tensor& input, const Tensor& weight, const MaybeTensor& bias, const IntList& stride,
                  const IntList& padding, const IntList& dilation, int64_t groups, Tensor& out) {
    conv_forward(geometry(stride, padding, dilation, groups), input, weight, bias, out);
  }
};

TensorMeta infer_conv_mode(const Tensor& input, const Tensor& weight, const MaybeTensor& bias, const IntList& stride,
                           const std::string& padding, const IntList& dilation, int64_t groups) {
  const ConvGeometry g = make_conv_geometry(weight.sizes(), stride, padding, dilation, groups);
  return infer_conv(op_name(g.spatial(), false), g, input, weight, bias);
}
PackedPtr pack_conv_mode(const ops::PackArgs& args) {
  const auto v = args.arguments;
  if (!v[1].is_tensor()) return nullptr;
  return pack_conv(
      args, make_conv_geometry(v[1].to_tensor().sizes(), ints(v[3]), v[4].to_string(), ints(v[5]), v[6].to_int()));
}
std::vector<Tensor> gradient_of_conv_mode(const ops::GradArgs& args) {
  const auto& v = args.inputs;
  return conv_gradient(
      args, make_conv_geometry(v[1].to_tensor().sizes(), ints(v[3]), v[4].to_string(), ints(v[5]), v[6].to_int()));
}
void run_conv_mode(Context, const Tensor& input, const Tensor& weight, const MaybeTensor& bias, const IntList& stride,
                   const std::string& padding, const IntList& dilation, int64_t groups, Tensor& out) {
  conv_forward(make_conv_geometry(weight.sizes(), stride, padding, dilation, groups), input, weight, bias, out);
}

template <size_t kSpatial>
struct Transposed {
  static ConvGeometry geometry(const IntList& stride, const IntList& padding, const IntList& output_padding,
                               int64_t groups, const IntList& dilation) {
    return make_conv_geometry(kSpatial, stride, padding, dilation, groups, true, output_padding);
  }
  static std::vector<Tensor> gradient(const ops::GradArgs& args) {
    const auto& v = args.inputs;
    return conv_gradient(args, geometry(ints(v[3]), ints(v[4]), ints(v[5]), v[6].to_int(), ints(v[7])));
  }
  static TensorMeta infer(const Tensor& input, const Tensor& weight, const MaybeTensor& bias, const IntList& stride,
                          const IntList& padding, const IntList& output_padding, int64_t groups,
                          const IntList& dilation) {
    return infer_conv(op_name(kSpatial, true), geometry(stride, padding, output_padding, groups, dilation), input,
                      weight, bias);
  }
  static void run(Context, const Tensor& input, const Tensor& weight, const MaybeTensor& bias, const IntList& stride,
                  const IntList& padding, const IntList& output_padding, int64_t groups, const IntList& dilation,
                  Tensor& out) {
    conv_forward(geometry(stride, padding, output_padding, groups, dilation), input, weight, bias, out);
  }
};

// convolution, and the overloads of _convolution, whose trailing flags choose backends in PyTorch and have no effect
// here.
template <class... Flags>
struct General {
  static ConvGeometry geometry(const Tensor& weight, const IntList& stride, const IntList& padding,
                               const IntList& dilation, bool is_transposed, const IntList& output_padding,
                               int64_t groups) {
    return make_conv_geometry(spatial_of(weight.sizes()), stride, padding, dilation, groups, is_transposed,
                              output_padding);
  }
  static PackedPtr pack(const ops::PackArgs& args) {
    const auto v = args.arguments;
    if (!v[1].is_tensor()) return nullptr;
    return pack_conv(args, geometry(v[1].to_tensor(), ints(v[3]), ints(v[4]), ints(v[5]), v[6].to_bool(), ints(v[7]),
                                    v[8].to_int()));
  }
  static std::vector<Tensor> gradient(const ops::GradArgs& args) {
    const auto& v = args.inputs;
    return conv_gradient(args, geometry(v[1].to_tensor(), ints(v[3]), ints(v[4]), ints(v[5]), v[6].to_bool(),
                                        ints(v[7]), v[8].to_int()));
  }
  static TensorMeta infer(const Tensor& input, const Tensor& weight, const MaybeTensor& bias, const IntList& stride,
                          const IntList& padding, const IntList& dilation, bool is_transposed,
                          const IntList& output_padding, int64_t groups, Flags...) {
    const ConvGeometry g = geometry(weight, stride, padding, dilation, is_transposed, output_padding, groups);
    return infer_conv(op_name(g.spatial(), is_transposed), g, input, weight, bias);
  }
  static void run(Context, const Tensor& input, const Tensor& weight, const MaybeTensor& bias, const IntList& stride,
                  const IntList& padding, const IntList& dilation, bool is_transposed, const IntList& output_padding,
                  int64_t groups, Flags..., Tensor& out) {
    conv_forward(geometry(weight, stride, padding, dilation, is_transposed, output_padding, groups), input, weight,
                 bias, out);
  }
};

OP("aten::conv1d")
    .set<ops::BatchIndependent>(ops::has_constant_weight)
    .set<ops::KeepsRank>()
    .infer(&Conv<1>::infer)
    .gradient(&Conv<1>::gradient)
    .saves("input, weight");
OP("aten::conv2d")
    .set<ops::BatchIndependent>(ops::has_constant_weight)
    .set<ops::KeepsRank>()
    .infer(&Conv<2>::infer)
    .gradient(&Conv<2>::gradient)
    .saves("input, weight");
OP("aten::conv3d")
    .set<ops::BatchIndependent>(ops::has_constant_weight)
    .set<ops::KeepsRank>()
    .infer(&Conv<3>::infer)
    .gradient(&Conv<3>::gradient)
    .saves("input, weight");
IMPL("aten::conv1d", DeviceKind::kCPU, &Conv<1>::run);
IMPL("aten::conv2d", DeviceKind::kCPU, &Conv<2>::run);
IMPL("aten::conv3d", DeviceKind::kCPU, &Conv<3>::run);
PACK("aten::conv1d", DeviceKind::kCPU, &Conv<1>::pack);
PACK("aten::conv2d", DeviceKind::kCPU, &Conv<2>::pack);
PACK("aten::conv3d", DeviceKind::kCPU, &Conv<3>::pack);

OP("aten::conv1d.padding")
    .set<ops::BatchIndependent>(ops::has_constant_weight)
    .set<ops::KeepsRank>()
    .infer(&infer_conv_mode)
    .gradient(&gradient_of_conv_mode)
    .saves("input, weight");
OP("aten::conv2d.padding")
    .set<ops::BatchIndependent>(ops::has_constant_weight)
    .set<ops::KeepsRank>()
    .infer(&infer_conv_mode)
    .gradient(&gradient_of_conv_mode)
    .saves("input, weight");
OP("aten::conv3d.padding")
    .set<ops::BatchIndependent>(ops::has_constant_weight)
    .set<ops::KeepsRank>()
    .infer(&infer_conv_mode)
    .gradient(&gradient_of_conv_mode)
    .saves("input, weight");
OP("aten::_convolution_mode")
    .set<ops::BatchIndependent>(ops::has_constant_weight)
    .infer(&infer_conv_mode)
    .gradient(&gradient_of_conv_mode)
    .saves("input, weight");
IMPL("aten::conv1d.padding", DeviceKind::kCPU, &run_conv_mode);
IMPL("aten::conv2d.padding", DeviceKind::kCPU, &run_conv_mode);
IMPL("aten::conv3d.padding", DeviceKind::kCPU, &run_conv_mode);
IMPL("aten::_convolution_mode", DeviceKind::kCPU, &run_conv_mode);
PACK("aten::conv1d.padding", DeviceKind::kCPU, &pack_conv_mode);
PACK("aten::conv2d.padding", DeviceKind::kCPU, &pack_conv_mode);
PACK("aten::conv3d.padding", DeviceKind::kCPU, &pack_conv_mode);
PACK("aten::_convolution_mode", DeviceKind::kCPU, &pack_conv_mode);

OP("aten::convolution")
    .set<ops::BatchIndependent>(ops::has_constant_weight)
    .infer(&General<>::infer)
    .gradient(&General<>::gradient)
    .saves("input, weight");
OP("aten::_convolution")
    .set<ops::BatchIndependent>(ops::has_constant_weight)
    .infer(&General<bool, bool, bool, bool>::infer)
    .gradient((&General<bool, bool, bool, bool>::gradient))
    .saves("input, weight");
OP("aten::_convolution.deprecated")
    .set<ops::BatchIndependent>(ops::has_constant_weight)
    .infer(&General<bool, bool, bool>::infer)
    .gradient((&General<bool, bool, bool>::gradient))
    .saves("input, weight");
IMPL("aten::convolution", DeviceKind::kCPU, &General<>::run);
IMPL("aten::_convolution", DeviceKind::kCPU, (&General<bool, bool, bool, bool>::run));
IMPL("aten::_convolution.deprecated", DeviceKind::kCPU, (&General<bool, bool, bool>::run));
PACK("aten::convolution", DeviceKind::kCPU, &General<>::pack);
PACK("aten::_convolution", DeviceKind::kCPU, &General<bool, bool, bool, bool>::pack);
PACK("aten::_convolution.deprecated", DeviceKind::kCPU, &General<bool, bool, bool>::pack);

OP("aten::conv_transpose1d").infer(&Transposed<1>::infer).gradient(&Transposed<1>::gradient).saves("input, weight");
OP("aten::conv_transpose2d.input")
    .infer(&Transposed<2>::infer)
    .gradient(&Transposed<2>::gradient)
    .saves("input, weight");
OP("aten::conv_transpose3d.input")
    .infer(&Transposed<3>::infer)
    .gradient(&Transposed<3>::gradient)
    .saves("input, weight");
IMPL("aten::conv_transpose1d", DeviceKind::kCPU, &Transposed<1>::run);
IMPL("aten::conv_transpose2d.input", DeviceKind::kCPU, &Transposed<2>::run);
IMPL("aten::conv_transpose3d.input", DeviceKind::kCPU, &Transposed<3>::run);

}  // namespace
}  // namespace tensord::kernels
