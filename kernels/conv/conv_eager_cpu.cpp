#include "kernels/conv/conv_eager.h"

#include "core/base/parallel.h"
#include "kernels/conv/kernel.h"
#include "kernels/gemm/transpose.h"

namespace tensord::kernels {
namespace {

constexpr int64_t kMinWinograd = 16, kWinogradTaps = 9;
constexpr double kEagerNsPerFlop = 0.01, kNsPerFloat = 0.1;

bool lies_channels_last(const Tensor& t) { return t.is_channels_last() && !t.is_contiguous(); }
int64_t pixels_of(const Dims& sizes) { return sizes[2] * sizes[3]; }

// Winograd's weights are transformed in each call, which does not pay off for few pixels. oneDNN is as fast as the
// plain sum except for images of one channel.
std::unique_ptr<ConvKernel> choose(const ConvProblem& p) {
  constexpr int64_t kMinPixels = 128;
  if (p.output[0] * pixels_of(p.output) >= kMinPixels) {
    if (auto kernel = make_winograd_conv(p)) return kernel;
  }
  return p.input[1] == 1 && !p.turns_weight ? make_direct_conv(p) : nullptr;
}

// The images in memory order N, H, W, C: the tensor's own memory, or a copy in `holder`.
const float* as_pixels(const Tensor& t, Tensor& holder) {
  if (lies_channels_last(t) || t.sizes()[1] == 1) return t.data<float>();
  holder = Tensor::empty(t.sizes(), DType::kFloat32);
  planes_to_pixels(t.data<float>(), t.sizes()[0], t.sizes()[1], pixels_of(t.sizes()), holder.data<float>());
  return holder.data<float>();
}

bool run(const ConvGeometry& g, const Tensor& input, const Tensor& weight, const Tensor* bias, const Tensor& out,
         bool turns_weight) {
  Epilogues epilogues;
  if (bias) epilogues.bias = *bias;
  const ConvProblem problem{g,
                            weight,
                            epilogues,
                            nullptr,
                            input.sizes(),
                            out.sizes(),
                            !lies_channels_last(input) && input.sizes()[1] > 1,
                            thread_budget(),
                            ops::Precision::kF32,
                            turns_weight,
                            kMinWinograd};
  const std::unique_ptr<ConvKernel> kernel = choose(problem);
  if (!kernel) return false;
  Tensor holder, to = out;
  const float* from = kernel->reads_planes ? input.data<float>() : as_pixels(input, holder);
  const bool writes_planes = !lies_channels_last(out) && out.sizes()[1] > 1;
  if (writes_planes) to = Tensor::empty(out.sizes(), DType::kFloat32);
  const Tensor scratch = Tensor::empty(Dims{static_cast<int64_t>(kernel->scratch_bytes)}, DType::kUInt8);
  kernel->run(from, nullptr, to.data<float>(), scratch.raw_data());
  if (writes_planes) {
    pixels_to_planes(to.data<float>(), out.sizes()[0], out.sizes()[1], pixels_of(out.sizes()), out.data<float>());
  }
  return true;
}

bool covers_sums(const ConvGeometry& g, const Tensor& out) {
  constexpr int64_t kVector = 16, kMaxSums = 512 * 512;
  if (g.spatial() != 2 || g.groups != 1 || out.sizes()[2] != 3 || out.sizes()[3] != 3) return false;
  for (size_t i = 0; i < 2; ++i) {
    if (g.stride[i] != 1 || g.dilation[i] != 1 || out.sizes()[i] % kVector != 0) return false;
  }
  return out.sizes()[0] * out.sizes()[1] <= kMaxSums;
}

int64_t tiles_of(const WinogradConv& conv, int64_t batch) { return batch * conv.tiles_h() * conv.tiles_w(); }

WinogradSums sums_of(const ConvGeometry& g, const Tensor& input, const Tensor& grad) {
  WinogradSums sums;
  WinogradConv& conv = sums.conv;
  conv.in_h = input.sizes()[2], conv.in_w = input.sizes()[3];
  conv.out_h = grad.sizes()[2], conv.out_w = grad.sizes()[3];
  conv.in_channels = input.sizes()[1], conv.out_channels = grad.sizes()[1];
  conv.pad_h = g.padding_low[0], conv.pad_w = g.padding_low[1];
  sums.grad_step = conv.out_channels;
  // With many channels, handles some of the outputs at a time to limit memory.
  constexpr int64_t kMaxSums = 256 * 256, kVector = 16;
  const int64_t fit = kMaxSums / conv.in_channels / kVector * kVector;
  conv.out_channels = std::clamp(fit, kVector, conv.out_channels);
  // Transformed inputs and gradients stay in the cache together with the sums, which each block reads and writes once.
  constexpr int64_t kMinFloats = 256 * 1024;
  const int64_t per_tile = WinogradSums::kPositions * (conv.in_channels + conv.out_channels);
  sums.tiles = std::min(tiles_of(conv, input.sizes()[0]), std::max(kMinFloats, sums.sum_floats()) / per_tile + 1);
  return sums;
}

// The sums over all tiles. `space` is scratch for inputs, gradients and sums.
const float* sum_tiles(const WinogradSums& sums, int64_t batch, const float* src, const float* grad,
                       const Tensor (&space)[3]) {
  float *inputs = space[0].data<float>(), *gradients = space[1].data<float>(), *total = space[2].data<float>();
  const int64_t all = tiles_of(sums.conv, batch), in = sums.conv.in_channels, out = sums.conv.out_channels;
  const double tile_ns = kNsPerFloat * static_cast<double>(WinogradSums::kPositions * (in + out));
  for (int64_t first = 0; first < all; first += sums.tiles) {
    const int64_t count = std::min(sums.tiles, all - first);
    parallel_for_cost(count, tile_ns, [&](int64_t begin, int64_t end) {
      transform_winograd_sums(sums, src, grad, first, begin, end, inputs, gradients);
    });
    const double position_ns = 2 * kEagerNsPerFlop * static_cast<double>(count * in * out);
    parallel_for_cost(WinogradSums::kPositions, position_ns, [&](int64_t begin, int64_t end) {
      add_winograd_sums(sums, inputs, gradients, count, first > 0, begin, end, total);
    });
  }
  return total;
}

}  // namespace

bool try_eager_conv(const ConvGeometry& g, const Tensor& input, const Tensor& weight, const Tensor* bias,
                    const Tensor& out) {
  if (g.spatial() != 2 || g.groups != 1) return false;
  return run(g, input, weight, bias, out, false);
}

bool try_eager_input_gradient(const ConvGeometry& g, const Tensor& grad, const Tensor& weight, const Tensor& out) {
  if (g.spatial() != 2 || g.groups != 1 || g.stride[0] != 1 || g.stride[1] != 1) return false;
  ConvGeometry back = g;
  for (size_t i = 0; i < 2; ++i) {
    const int64_t reach = g.dilation[i] * (weight.sizes()[i + 2] - 1);
    back.padding_low[i] = reach - g.padding_low[i];
    back.padding_high[i] = reach - g.padding_high[i];
    if (back.padding_low[i] < 0 || back.padding_high[i] < 0) return false;
  }
  return run(back, grad, weight, nullptr, out, true);
}

bool try_eager_weight_gradient(const ConvGeometry& g, const Tensor& grad, const Tensor& input, const Tensor& out) {
  if (!covers_sums(g, out)) return false;
  WinogradSums sums = sums_of(g, input, grad);
  // The sums are written and read once, which pays off from some number of tiles on.
  constexpr int64_t kMinTiles = 16;
  if (tiles_of(sums.conv, input.sizes()[0]) < kMinTiles) return false;
  const auto floats = [](int64_t count) { return Tensor::empty(Dims{count}, DType::kFloat32); };
  const int64_t in = sums.conv.in_channels, channels = grad.sizes()[1];
  const Tensor zeros = floats(std::max(in, channels));
  std::fill_n(zeros.data<float>(), zeros.numel(), 0.0f);
  sums.conv.zeros = zeros.data<float>();
  Tensor holders[2];
  const float *src = as_pixels(input, holders[0]), *from = as_pixels(grad, holders[1]);
  const Tensor space[] = {floats(sums.input_floats()), floats(sums.gradient_floats()), floats(sums.sum_floats())};
  const bool last = lies_channels_last(out);
  const int64_t out_step = kWinogradTaps * in, in_step = last ? 1 : kWinogradTaps, tap_step = last ? in : 1;
  const int64_t block = sums.conv.out_channels;
  for (int64_t first = 0; first < channels; first += block) {
    sums.conv.out_channels = std::min(block, channels - first);
    const float* total = sum_tiles(sums, input.sizes()[0], src, from + first, space);
    const double ns = kNsPerFloat * static_cast<double>(WinogradSums::kPositions * sums.conv.out_channels);
    parallel_for_cost(in, ns, [&](int64_t begin, int64_t end) {
      finish_winograd_sums(sums, total, begin, end, out.data<float>() + first * out_step, out_step, in_step, tap_step);
    });
  }
  return true;
}

}  // namespace tensord::kernels
