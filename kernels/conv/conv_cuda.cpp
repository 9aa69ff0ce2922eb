// Convolutions on a CUDA device. All operators end in run_conv, which chooses between cuDNN and kernels of our own.
#include <algorithm>

#include "core/tensor/device_copy.h"
#include "kernels/base/lines.h"
#include "kernels/conv/conv.h"
#include "kernels/conv/dnn_cuda.h"
#include "kernels/cuda/launch.h"
#include "kernels/reduce/reduce.h"
#include "ops/pointwise.h"

namespace tensord::kernels {
namespace {

struct ConvOperands {
  const Tensor &image, &grid, &weight;  // batched
  const std::optional<Tensor>& bias;
};

int small_int(int64_t value) {
  check(value >= -(int64_t{1} << 30) && value <= int64_t{1} << 30, "a convolution on CUDA of sizes above 2**30");
  return static_cast<int>(value);
}

void set_strides(const Tensor& t, size_t spatial, int64_t (&strides)[5]) {
  strides[0] = t.strides()[0], strides[1] = t.strides()[1];
  for (size_t d = 0; d < spatial; ++d) strides[5 - spatial + d] = t.strides()[2 + d];
}

ConvJob conv_job(const ConvGeometry& g, const ConvOperands& t) {
  ConvJob job;
  job.dtype = static_cast<int8_t>(t.weight.dtype());
  job.groups = g.groups;
  job.grid_channels = t.weight.sizes()[0] / g.groups;
  job.image_channels = t.weight.sizes()[1];
  const size_t spatial = g.spatial();
  for (size_t d = 0; d < spatial; ++d) {
    const size_t to = 3 - spatial + d;
    job.image[to] = small_int(t.image.sizes()[2 + d]);
    job.grid[to] = small_int(t.grid.sizes()[2 + d]);
    job.kernel[to] = small_int(t.weight.sizes()[2 + d]);
    job.stride[to] = small_int(g.stride[d]);
    job.padding[to] = small_int(g.padding_low[d]);
    job.dilation[to] = small_int(g.dilation[d]);
    // For every position that a kernel computes.
    small_int(g.stride[d] * t.grid.sizes()[2 + d] + g.dilation[d] * t.weight.sizes()[2 + d]);
    small_int(t.image.sizes()[2 + d] + g.padding_low[d]);
  }
  set_strides(t.image, spatial, job.image_strides);
  set_strides(t.grid, spatial, job.grid_strides);
  set_strides(t.weight, spatial, job.weight_strides);
  job.image_at = t.image.raw_data(), job.grid_at = t.grid.raw_data(), job.weight_at = t.weight.raw_data();
  if (t.bias) job.bias = t.bias->raw_data(), job.bias_stride = t.bias->strides()[0];
  return job;
}

int64_t volume(const int (&sizes)[3]) { return int64_t{sizes[0]} * sizes[1] * sizes[2]; }

void set_product(ConvJob& job, ConvResult result, int64_t batch) {
  job.result = result;
  const bool is_weight = result == ConvResult::kWeight;
  const int(&n_sizes)[3] = is_weight ? job.kernel : result == ConvResult::kGrid ? job.grid : job.image;
  const int(&k_sizes)[3] = is_weight ? job.grid : job.kernel;
  std::copy_n(n_sizes, 3, job.n_sizes);
  std::copy_n(k_sizes, 3, job.k_sizes);
  job.m = result == ConvResult::kImage ? job.image_channels : job.grid_channels;
  job.n = (is_weight ? job.image_channels : batch) * volume(job.n_sizes);
  const int64_t leads = is_weight ? batch : result == ConvResult::kGrid ? job.image_channels : job.grid_channels;
  job.k = leads * volume(job.k_sizes);
}

// The number of parts of k that fill the device when there are few tiles of results.
int parts_of(const ConvJob& job) {
  constexpr int64_t kTile = 64, kPart = 512, kEnoughBlocks = 512, kMaxParts = 128;
  const int64_t blocks = ((job.m + kTile - 1) / kTile) * ((job.n + kTile - 1) / kTile) * job.groups;
  return static_cast<int>(std::clamp(std::min(job.k / kPart, kEnoughBlocks / blocks), int64_t{1}, kMaxParts));
}

void add_bias(const Tensor& out, const Tensor& bias) {
  Dims sizes(out.sizes().size(), 1), strides(out.sizes().size(), 0);
  sizes[1] = bias.numel(), strides[1] = bias.strides()[0];
  ops::add_(out, bias.as_view(sizes, strides, bias.offset()));
}

void run_conv(ConvResult result, const ConvGeometry& g, const ConvOperands& t) {
  const Tensor& out = result == ConvResult::kGrid ? t.grid : result == ConvResult::kImage ? t.image : t.weight;
  if (out.numel() == 0) return;
  if (conv_by_library(result, g, t.image, t.grid, t.weight)) {
    if (t.bias) add_bias(out, *t.bias);
    return;
  }
  constexpr int64_t kFewRows = 8;
  ConvJob job = conv_job(g, t);
  set_product(job, result, t.image.sizes()[0]);
  job.is_direct = job.m <= kFewRows && job.groups > 1;
  if (!job.is_direct) {
    constexpr int64_t kMaxTiles = int64_t{1} << 31;
    check((job.m / 64 + 1) * (job.n / 64 + 1) < kMaxTiles,
          "a convolution on CUDA of more tiles than a grid has blocks");
    job.parts = parts_of(job);
  }
  Tensor partial;
  if (job.parts > 1) {
    partial = Tensor::empty(Dims{job.parts, job.groups, job.m, job.n}, loop_dtype(out.dtype()), out.device());
    job.partial = partial.raw_data();
  }
  launch(ops::KernelContext(out.device()), &KernelTable::convolution, job);
}

}  // namespace

void conv_forward_cuda(const ConvGeometry& g, const Tensor& input, const Tensor& weight,
                       const std::optional<Tensor>& bias, const Tensor& out) {
  if (g.is_transposed)
    run_conv(ConvResult::kImage, g, {out, input, weight, bias});
  else
    run_conv(ConvResult::kGrid, g, {input, out, weight, bias});
}

void conv_input_gradient_cuda(const ConvGeometry& g, const Tensor& grad, const Tensor& weight, const Tensor& out) {
  if (g.is_transposed)
    run_conv(ConvResult::kGrid, g, {grad, out, weight, std::nullopt});
  else
    run_conv(ConvResult::kImage, g, {out, grad, weight, std::nullopt});
}

void conv_weight_gradient_cuda(const ConvGeometry& g, const Tensor& grad, const Tensor& input, const Tensor& out) {
  const Tensor &image = g.is_transposed ? grad : input, &grid = g.is_transposed ? input : grad;
  run_conv(ConvResult::kWeight, g, {image, grid, out, std::nullopt});
}

void conv_bias_gradient_cuda(const Tensor& grad, const Tensor& out) {
  Dims sizes(grad.sizes().size(), 1), strides(grad.sizes().size(), 0);
  sizes[1] = out.numel(), strides[1] = out.strides()[0];
  run_reduction({.compute = grad.dtype()}, grad, out.as_view(sizes, strides, out.offset()));
}

}  // namespace tensord::kernels
