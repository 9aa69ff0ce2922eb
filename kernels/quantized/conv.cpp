// Convolutions from quint8 to quint8 of one to three dimensions: patches of the input as rows of a product, and
// depthwise ones tap by tap. Tensors have their channels last inside.
#include "kernels/quantized/conv.h"

#include <algorithm>

#include "core/ops/registry.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::Value;
using Arguments = std::span<const Value>;
using Returns = std::vector<Value>;

// The same tensor with two dimensions in front of the kernel's three: [n, c, d, h, w].
Tensor as_three(const Tensor& x) {
  Tensor out = x;
  while (out.ndim() < 5) out = ops::unsqueeze(out, 2);
  return out;
}

// A convolution of one dimension is packed as one of two with a height of 1.
Value conv(const Value& input, const Value& packed, const Value& scale, const Value& zero_point, int dims, bool relu) {
  const QuantizedTensor& x = layer_input(input);
  const auto params = ops::Unbox<ConvParamsPtr>::get(packed);
  const auto rank = static_cast<size_t>(dims) + 2;
  check(x.sizes().size() == rank, "expected an input of ", rank, " dimensions, but got ", x.sizes());
  check(params->dims() == static_cast<size_t>(std::max(dims, 2)), "expected weights of ", dims, " dimensions, but got ",
        params->weight()->describe());
  const Quantizer result = layer_result(scale, zero_point);
  const Requantization requantization(x, result, params->scales(), params->bias_or_zeros(), relu);
  Tensor out = quantized_conv(as_three(x.values()), *params, requantization);
  while (out.ndim() > static_cast<int64_t>(rank)) out = ops::squeeze(out, 2);
  return box(QuantizedType::kQUInt8, out, result);
}

template <int kDims, bool kRelu>
void run(Arguments v, Returns& returns) {
  returns.push_back(conv(v[0], v[1], v[2], v[3], kDims, kRelu));
}
// Archives from before PyTorch 1.6, which repeat the geometry.
template <int kDims, bool kRelu>
void run_old(Arguments v, Returns& returns) {
  returns.push_back(conv(v[0], v[1], v[6], v[7], kDims, kRelu));
}

QUANTIZED_OP("quantized::conv1d", &run<1, false>);
QUANTIZED_OP("quantized::conv1d_relu", &run<1, true>);
QUANTIZED_OP("quantized::conv2d.new", &run<2, false>);
QUANTIZED_OP("quantized::conv2d_relu.new", &run<2, true>);
QUANTIZED_OP("quantized::conv3d.new", &run<3, false>);
QUANTIZED_OP("quantized::conv3d_relu.new", &run<3, true>);
QUANTIZED_OP("quantized::conv2d", &run_old<2, false>);
QUANTIZED_OP("quantized::conv2d_relu", &run_old<2, true>);
QUANTIZED_OP("quantized::conv3d", &run_old<3, false>);
QUANTIZED_OP("quantized::conv3d_relu", &run_old<3, true>);

// --- packing

std::vector<int64_t> list_of(const Value& value) {
  const Dims dims = ops::Unbox<Dims>::get(value);
  return {dims.begin(), dims.end()};
}

// (weight, bias, stride, padding, dilation, groups)
template <int kDims>
void prepack(Arguments v, Returns& returns) {
  const QuantizedTensor& weight = quantized_of(v[0]);
  check(weight.sizes().size() == kDims + 2u, "expected a weight of ", kDims + 2, " dimensions, but got ",
        weight.describe());
  ConvParams::Geometry geometry{list_of(v[2]), list_of(v[3]), list_of(v[4]), v[5].to_int()};
  QuantizedPtr packed(const_cast<QuantizedTensor*>(&weight));
  if (kDims == 1) {
    packed = make_intrusive<QuantizedTensor>(weight.type(), ops::unsqueeze(weight.values(), 2), weight.quantizer());
    geometry.stride.insert(geometry.stride.begin(), 1);
    geometry.padding.insert(geometry.padding.begin(), 0);
    geometry.dilation.insert(geometry.dilation.begin(), 1);
  }
  returns.push_back(
      Value(IntrusivePtr<ops::OpaqueObject>(make_intrusive<ConvParams>(std::move(packed), v[1], std::move(geometry)))));
}

QUANTIZED_OP("quantized::conv1d_prepack", &prepack<1>);
QUANTIZED_OP("quantized::conv2d_prepack", &prepack<2>);
QUANTIZED_OP("quantized::conv3d_prepack", &prepack<3>);
QUANTIZED_OP("quantized::conv_prepack", &prepack<2>);

ops::Returns unpack(const ConvParams& params, bool is_1d) {
  Value weight(Tensor(params.weight()));
  if (is_1d)
    weight = box(QuantizedType::kQInt8, ops::squeeze(params.weight()->values(), 2), params.weight()->quantizer());
  return {{weight, Value(params.bias())}};
}
OP("quantized::conv1d_unpack").impl([](const ConvParamsPtr& params) { return unpack(*params, true); });
OP("quantized::conv2d_unpack").impl([](const ConvParamsPtr& params) { return unpack(*params, false); });
OP("quantized::conv3d_unpack").impl([](const ConvParamsPtr& params) { return unpack(*params, false); });

}  // namespace
}  // namespace tensord::kernels
