#include "kernels/conv_eager.h"

#include "core/base/parallel.h"
#include "kernels/conv_kernel.h"
#include "kernels/transpose.h"

namespace tensord::kernels {
namespace {

bool is_last(const Tensor& t) { return t.is_channels_last() && !t.is_contiguous(); }
int64_t pixels_of(const Dims& sizes) { return sizes[2] * sizes[3]; }

// oneDNN is as fast as plain sums, but for images of one plane.
std::unique_ptr<ConvKernel> choose(const ConvProblem& p) {
  if (auto kernel = make_winograd_conv(p)) return kernel;
  return p.input[1] == 1 && !p.turns_weight ? make_direct_conv(p) : nullptr;
}

bool run(const ConvGeometry& g, const Tensor& input, const Tensor& weight, const Tensor* bias, const Tensor& out,
         bool turns_weight) {
  Epilogues epilogues;
  if (bias) epilogues.bias = *bias;
  ConvWeights packed;
  const ConvProblem problem{g,
                            weight,
                            epilogues,
                            packed,
                            input.sizes(),
                            out.sizes(),
                            !is_last(input) && input.sizes()[1] > 1,
                            thread_budget(),
                            ops::Precision::kF32,
                            turns_weight};
  const std::unique_ptr<ConvKernel> kernel = choose(problem);
  if (!kernel) return false;
  const auto dense = [](const Dims& sizes) { return Tensor::empty(sizes, DType::kFloat32); };
  Tensor from = input, to = out;
  if (problem.has_planes && !kernel->reads_planes) {
    from = dense(input.sizes());
    planes_to_pixels(input.data<float>(), input.sizes()[0], input.sizes()[1], pixels_of(input.sizes()),
                     from.data<float>());
  }
  const bool writes_planes = !is_last(out) && out.sizes()[1] > 1;
  if (writes_planes) to = dense(out.sizes());
  const Tensor scratch = Tensor::empty(Dims{static_cast<int64_t>(kernel->scratch_bytes)}, DType::kUInt8);
  kernel->run(from.data<float>(), nullptr, to.data<float>(), scratch.raw_data());
  if (writes_planes) {
    pixels_to_planes(to.data<float>(), out.sizes()[0], out.sizes()[1], pixels_of(out.sizes()), out.data<float>());
  }
  return true;
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

}  // namespace tensord::kernels
