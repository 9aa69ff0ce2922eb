#pragma once

#include "kernels/conv/conv.h"
#include "kernels/onednn/description.h"

namespace tensord::kernels {

// The weight as oneDNN reads it: (groups,) out, in, spatial… over the tensor's own memory. A
// transposed convolution's weight lies in, out.
MemoryDesc conv_weight_desc(const Tensor& weight, const ConvGeometry& geometry, OnednnType type = OnednnType::f32);

struct ConvDescs {
  MemoryDesc src, weights, bias, dst;  // bias of 0 dimensions: none

  bool has_bias() const { return !onednn_sizes(bias).empty(); }
};

// Primitive is dnnl::convolution_forward or dnnl::deconvolution_forward. Throws dnnl::error.
template <class Primitive>
typename Primitive::primitive_desc conv_primitive_desc(const ConvGeometry& g, const ConvDescs& d,
                                                       dnnl::algorithm algorithm, const dnnl::primitive_attr& attr) {
  dnnl::memory::dims dilates, high;
  for (size_t i = 0; i < g.spatial(); ++i) {
    dilates.push_back(g.dilation[i] - 1);
    high.push_back(g.padding_high[i] - g.output_padding[i]);
  }
  const auto kind = dnnl::prop_kind::forward_inference;
  const auto strides = onednn_dims(g.stride), low = onednn_dims(g.padding_low);
  if (d.has_bias())
    return onednn_describe<Primitive>(attr, kind, algorithm, d.src, d.weights, d.bias, d.dst, strides, dilates, low,
                                      high);
  return onednn_describe<Primitive>(attr, kind, algorithm, d.src, d.weights, d.dst, strides, dilates, low, high);
}

}  // namespace tensord::kernels
