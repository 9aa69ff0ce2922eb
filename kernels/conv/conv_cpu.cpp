// Convolution and its gradients on the CPU: f32 by oneDNN, which reorders operands that its kernel wants in another
// layout; f64 and integers by im2col and a matrix product; f16 and bf16 through f32, but for passes of bf16 on
// processors that multiply it.
#include "core/tensor/strided_copy.h"
#include "kernels/base/packed_half.h"
#include "kernels/conv/conv.h"
#include "kernels/conv/conv_eager.h"
#include "kernels/conv/onednn.h"
#include "kernels/conv/primitive.h"

namespace tensord::kernels {

MemoryDesc conv_weight_desc(const Tensor& weight, const ConvGeometry& g, OnednnType type) {
  Dims sizes = weight.sizes(), strides = weight.strides();
  const int64_t group_stride = strides[0] * (sizes[0] / g.groups);
  sizes[0] /= g.groups;
  if (g.is_transposed) {
    std::swap(sizes[0], sizes[1]);
    std::swap(strides[0], strides[1]);
  }
  if (g.groups > 1) {
    sizes.insert(0, g.groups);
    strides.insert(0, group_stride);
  }
  return onednn_desc(sizes, strides, type);
}

ConvGeometry conv_from_image(const ConvGeometry& geometry) {
  ConvGeometry g = geometry;
  if (!g.is_transposed) return g;
  g.is_transposed = false;
  for (size_t i = 0; i < g.spatial(); ++i) g.padding_high[i] -= g.output_padding[i];
  g.output_padding = Dims(g.spatial(), 0);
  return g;
}

namespace {

// oneDNN does not read views that skip or repeat elements.
Tensor as_dense(const Tensor& t) { return t.is_channels_last() ? t : t.contiguous(); }
bool is_dense(const Tensor& t) { return t.is_contiguous() || t.is_channels_last(); }

Tensor widened(const Tensor& t) { return t.to(DType::kFloat32); }

// Runs a pass whose result is `out` in bfloat16. Returns false where oneDNN has no fast code for it.
bool try_bf16_primitive(ConvPass pass, const ConvGeometry& geometry, const ConvTensors& t, const Tensor& out) {
  const ConvGeometry g = conv_from_image(geometry);
  const bool is_bf16 = t.image.dtype() == DType::kBFloat16 && onednn_multiplies_bf16();
  if (!is_bf16 || !is_dense(out) || !fits_conv_primitive(g, t)) return false;
  const Tensor image = as_dense(t.image), grid = as_dense(t.grid), weight = as_dense(t.weight);
  const Tensor bias = t.bias ? t.bias->contiguous() : Tensor();
  return onednn_call("conv", [&] {
    return run_conv_primitive(pass, g, {image, weight, grid, t.bias ? &bias : nullptr});
  });
}

// Runs a pass whose result is `out`. Returns false when oneDNN does not support it. REQUIRES: f32.
bool try_primitive(ConvPass pass, const ConvGeometry& geometry, const ConvTensors& t, const Tensor& out) {
  const ConvGeometry g = conv_from_image(geometry);
  if (t.image.dtype() != DType::kFloat32 || !is_dense(out) || !fits_conv_primitive(g, t)) return false;
  const Tensor image = as_dense(t.image), grid = as_dense(t.grid), weight = as_dense(t.weight);
  const Tensor bias = t.bias ? t.bias->contiguous() : Tensor();
  if (pass == ConvPass::kForward && try_eager_conv(g, image, weight, t.bias ? &bias : nullptr, grid)) return true;
  if (pass == ConvPass::kData && try_eager_input_gradient(g, grid, weight, image)) return true;
  onednn_call("conv", [&] { run_conv_primitive(pass, g, {image, weight, grid, t.bias ? &bias : nullptr}); });
  return true;
}

bool try_winograd(const ConvGeometry& g, const Tensor& image, const Tensor& grid, const Tensor& out) {
  if (image.dtype() != DType::kFloat32 || !is_dense(out) || image.numel() == 0 || grid.numel() == 0) return false;
  return try_eager_weight_gradient(g, as_dense(grid), as_dense(image), out);
}

void forward_batched(const ConvGeometry& g, const Tensor& input, const Tensor& weight,
                     const std::optional<Tensor>& bias, Tensor& out) {
  if (out.device().kind == kCUDA) return conv_forward_cuda(g, input, weight, bias, out);
  const Tensor* added = bias ? &*bias : nullptr;
  if (!g.is_transposed && try_bf16_primitive(ConvPass::kForward, g, {input, weight, out, added}, out)) return;
  if (is_half(input.dtype())) {
    Tensor wide_out = Tensor::empty_strided(out.sizes(), out.strides(), DType::kFloat32);
    forward_batched(g, widened(input), widened(weight), bias ? std::optional<Tensor>(widened(*bias)) : std::nullopt,
                    wide_out);
    return strided_copy(out, wide_out);
  }
  const bool done = g.is_transposed ? try_primitive(ConvPass::kTransposed, g, {out, weight, input, added}, out)
                                    : try_primitive(ConvPass::kForward, g, {input, weight, out, added}, out);
  if (!done) conv_by_gemm(g, input, weight, bias, out);
}

Tensor with_batch(const Tensor& t) {
  Dims sizes = t.sizes(), strides = t.strides();
  sizes.insert(0, 1);
  strides.insert(0, t.numel());
  return t.as_view(sizes, strides, t.offset());
}

}  // namespace

void conv_forward(const ConvGeometry& g, const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                  Tensor& out) {
  if (static_cast<size_t>(input.ndim()) == g.spatial() + 2) return forward_batched(g, input, weight, bias, out);
  Tensor batched_out = with_batch(out);
  forward_batched(g, with_batch(input), weight, bias, batched_out);
}

void conv_input_gradient(const ConvGeometry& g, const Tensor& grad, const Tensor& weight, Tensor& out) {
  if (out.device().kind == kCUDA) return conv_input_gradient_cuda(g, grad, weight, out);
  if (!g.is_transposed && try_bf16_primitive(ConvPass::kData, g, {out, weight, grad}, out)) return;
  if (is_half(grad.dtype())) {
    Tensor wide_out = Tensor::empty_strided(out.sizes(), out.strides(), DType::kFloat32);
    conv_input_gradient(g, widened(grad), widened(weight), wide_out);
    return strided_copy(out, wide_out);
  }
  if (g.is_transposed) return forward_batched(conv_from_image(g), grad, weight, std::nullopt, out);
  if (try_primitive(ConvPass::kData, g, {out, weight, grad}, out)) return;
  ConvGeometry back = g;
  back.is_transposed = true;
  conv_by_gemm(back, grad, weight, std::nullopt, out);
}

void conv_weight_gradient(const ConvGeometry& g, const Tensor& grad, const Tensor& input, Tensor& out, Tensor* bias) {
  if (out.device().kind == kCUDA) {
    conv_weight_gradient_cuda(g, grad, input, out);
    if (bias) conv_bias_gradient(grad, *bias);
    return;
  }
  // bfloat16 goes through float32: oneDNN 2.6's own code for it is wrong for some shapes
  // (python/tests/test_bfloat16.py).
  if (is_half(grad.dtype())) {
    Tensor wide_out = Tensor::empty_strided(out.sizes(), out.strides(), DType::kFloat32);
    Tensor wide_bias = bias ? Tensor::empty(bias->sizes(), DType::kFloat32) : Tensor();
    conv_weight_gradient(g, widened(grad), widened(input), wide_out, bias ? &wide_bias : nullptr);
    if (bias) strided_copy(*bias, wide_bias);
    return strided_copy(out, wide_out);
  }
  const Tensor &image = g.is_transposed ? grad : input, &grid = g.is_transposed ? input : grad;
  // For a transposed convolution the bias is added to the image afterwards, since oneDNN does not sum it here.
  Tensor* summed = g.is_transposed ? nullptr : bias;
  if (try_winograd(conv_from_image(g), image, grid, out)) {
    summed = nullptr;
  } else if (!try_primitive(ConvPass::kWeights, g, {image, out, grid, summed}, out)) {
    conv_weight_by_gemm(conv_from_image(g), image, grid, out);
    summed = nullptr;
  }
  if (bias && !summed) conv_bias_gradient(grad, *bias);
}

}  // namespace tensord::kernels
