// Convolution on the CPU: f32 by oneDNN, which reorders operands that lie in another order than
// its kernel likes; f64 and integers by columns and a matrix product; f16 and bf16 through f32.
#include "core/tensor/strided_copy.h"
#include "kernels/conv.h"
#include "kernels/conv_onednn.h"

namespace tensord::kernels {
MemoryDesc conv_weight_desc(const Tensor& weight, const ConvGeometry& g) {
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
  return onednn_desc(sizes, strides);
}

namespace {

template <class Primitive>
void run_onednn(const ConvGeometry& g, const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                Tensor& out, dnnl::algorithm algorithm) {
  const MemoryDesc user_src = onednn_desc(input.sizes(), input.strides()),
                   user_dst = onednn_desc(out.sizes(), out.strides());
  const MemoryDesc user_weights = conv_weight_desc(weight, g);
  const bool is_last = out.is_channels_last() && !out.is_contiguous();
  ConvDescs descs{
      is_last ? onednn_desc(input.sizes(), channels_last_strides(input.sizes())) : onednn_any(input.sizes()),
      MemoryDesc(user_weights.dims(), dnnl::memory::data_type::f32, dnnl::memory::format_tag::any), MemoryDesc(),
      is_last ? user_dst : onednn_any(out.sizes())};
  Tensor dense_bias;
  if (bias) {
    dense_bias = bias->contiguous();
    descs.bias = onednn_desc(dense_bias.sizes(), dense_bias.strides());
  }
  const auto pd = conv_primitive_desc<Primitive>(g, descs, algorithm, dnnl::primitive_attr());
  Tensor src_holder, weights_holder, dst_holder;
  const dnnl::memory src = onednn_reordered(onednn_memory(user_src, input.raw_data()), pd.src_desc(), src_holder);
  const dnnl::memory weights =
      onednn_reordered(onednn_memory(user_weights, weight.raw_data()), pd.weights_desc(), weights_holder);
  const bool in_place = pd.dst_desc() == user_dst;
  dnnl::memory dst = in_place ? onednn_memory(user_dst, out.raw_data()) : onednn_allocate(pd.dst_desc(), dst_holder);
  std::unordered_map<int, dnnl::memory> args{{DNNL_ARG_SRC, src}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, dst}};
  if (bias) args.emplace(DNNL_ARG_BIAS, onednn_memory(descs.bias, dense_bias.raw_data()));
  Primitive(pd).execute(onednn_stream(), args);
  if (!in_place) {
    dnnl::memory user = onednn_memory(user_dst, out.raw_data());
    dnnl::reorder(dst, user).execute(onednn_stream(), dst, user);
  }
}

// oneDNN takes no strides of views that leave out or repeat elements.
Tensor as_dense(const Tensor& t) { return t.is_channels_last() ? t : t.contiguous(); }

// oneDNN's padding at the far side may be negative, but less than a stride.
bool fits_onednn(const ConvGeometry& g, const Tensor& input, const Tensor& out) {
  if (input.numel() == 0 || out.numel() == 0) return false;
  for (size_t i = 0; i < g.spatial(); ++i) {
    if (g.is_transposed && g.padding_high[i] - g.output_padding[i] + g.stride[i] <= 0) return false;
  }
  return true;
}

void forward_batched(const ConvGeometry& g, const Tensor& input, const Tensor& weight,
                     const std::optional<Tensor>& bias, Tensor& out) {
  const DType dtype = input.dtype();
  if (dtype == DType::kFloat16 || dtype == DType::kBFloat16) {
    const auto wide = [](const Tensor& t) { return t.to(DType::kFloat32); };
    Tensor wide_out = Tensor::empty_strided(out.sizes(), out.strides(), DType::kFloat32);
    forward_batched(g, wide(input), wide(weight), bias ? std::optional<Tensor>(wide(*bias)) : std::nullopt, wide_out);
    return strided_copy(out, wide_out);
  }
  if (dtype != DType::kFloat32 || !fits_onednn(g, input, out)) return conv_by_gemm(g, input, weight, bias, out);
  const Tensor src = as_dense(input), weights = as_dense(weight);
  onednn_call(g.is_transposed ? "conv_transpose" : "conv", [&] {
    if (g.is_transposed) {
      run_onednn<dnnl::deconvolution_forward>(g, src, weights, bias, out, dnnl::algorithm::deconvolution_direct);
    } else {
      run_onednn<dnnl::convolution_forward>(g, src, weights, bias, out, dnnl::algorithm::convolution_direct);
    }
  });
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

}  // namespace tensord::kernels
