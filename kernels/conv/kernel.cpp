#include "kernels/conv/kernel.h"

#include <algorithm>
#include <limits>

namespace tensord::kernels {

std::optional<ConvEpilogue> conv_epilogue_of(const Epilogues& epilogues) {
  using Kind = EpilogueStep::Kind;
  using To = ConvEpilogue::Kind;
  ConvEpilogue finish;
  const auto add = [&](To kind, double alpha = 0, double beta = 0) {
    finish.steps[static_cast<size_t>(finish.count++)] = {kind, static_cast<float>(alpha), static_cast<float>(beta)};
  };
  for (size_t i = 0; i < epilogues.steps.size(); ++i) {
    const EpilogueStep& e = epilogues.steps[i];
    if (static_cast<size_t>(finish.count) + 2 > finish.steps.size()) return std::nullopt;
    switch (e.kind) {
      case Kind::kRelu:
        if (e.alpha != 0)
          add(To::kLeaky, e.alpha);
        else if (i == 0)
          finish.low = 0;
        else
          add(To::kClip, 0, std::numeric_limits<double>::infinity());  // an infinity times 0 is a NaN
        break;
      case Kind::kClip:
        if (i == 0) {
          finish.low = static_cast<float>(e.alpha);
          finish.high = static_cast<float>(e.beta);
        } else {
          add(To::kClip, e.alpha, e.beta);
        }
        break;
      case Kind::kLinear: add(To::kLinear, e.alpha, e.beta); break;
      case Kind::kSigmoid: add(To::kSigmoid); break;
      case Kind::kSilu: add(To::kSilu); break;
      case Kind::kHardSwish: add(To::kHardSwish); break;
      case Kind::kHardSigmoid:
        add(To::kLinear, 1.0 / 6, 0.5);
        add(To::kClip, 0, 1);
        break;
      default: return std::nullopt;
    }
  }
  return finish;
}

ConvPlane conv_plane_of(const ConvProblem& p) {
  const bool is_line = p.geometry.spatial() == 1;
  const auto at = [is_line](const Dims& list, size_t first, size_t i, int64_t none) {
    return is_line ? (i == 0 ? none : list[first]) : list[first + i];
  };
  const ConvGeometry& g = p.geometry;
  const Dims& kernel = p.weight.sizes();
  ConvPlane plane{};
  plane.kernel_h = at(kernel, 2, 0, 1), plane.kernel_w = at(kernel, 2, 1, 1);
  plane.stride_h = at(g.stride, 0, 0, 1), plane.stride_w = at(g.stride, 0, 1, 1);
  plane.dilation_h = at(g.dilation, 0, 0, 1), plane.dilation_w = at(g.dilation, 0, 1, 1);
  plane.pad_h = at(g.padding_low, 0, 0, 0), plane.pad_w = at(g.padding_low, 0, 1, 0);
  plane.batch = p.input[0], plane.in_channels = p.input[1], plane.out_channels = p.output[1];
  plane.in_h = at(p.input, 2, 0, 1), plane.in_w = at(p.input, 2, 1, 1);
  plane.out_h = at(p.output, 2, 0, 1), plane.out_w = at(p.output, 2, 1, 1);
  return plane;
}

std::unique_ptr<ConvKernel> make_conv_kernel(const ConvProblem& problem) {
  // Winograd's algorithm in f32 is as fast as the plain sum in lower precision, and depthwise convolutions are bound by
  // memory, so both stay in f32.
  for (const auto& make : {make_depthwise_conv, make_winograd_conv, make_gemm_conv, make_direct_conv}) {
    if (auto kernel = make(problem)) return kernel;
  }
  return make_onednn_conv(problem);
}

}  // namespace tensord::kernels
