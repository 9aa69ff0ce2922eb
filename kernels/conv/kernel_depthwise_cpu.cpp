#include <algorithm>

#include "core/base/cancellation.h"
#include "core/base/parallel.h"
#include "kernels/conv/kernel.h"

namespace tensord::kernels {
namespace {

class DepthwiseKernel final : public ConvKernel {
 public:
  DepthwiseKernel(const ConvProblem& p, const ConvPlane& plane, const ConvEpilogue& finish)
      : rows_(plane.batch * plane.out_h) {
    variant = "depthwise";
    adds_halves = false;  // neighboring tiles compute some results twice
    const int64_t channels = plane.in_channels, taps = plane.kernel_h * plane.kernel_w;
    weights_ = *p.packed_weight("depthwise", [&] {
      const Tensor weight = p.weight.contiguous(), turned = Tensor::empty(Dims{taps, channels}, DType::kFloat32);
      const float* from = weight.data<float>();
      for (int64_t c = 0; c < channels; ++c) {
        const float by = p.scale() ? p.scale()[c] : 1.0f;
        for (int64_t t = 0; t < taps; ++t) turned.data<float>()[t * channels + c] = from[c * taps + t] * by;
      }
      return turned;
    });
    // The bias, followed by zeros that stand for pixels outside of the image.
    bias_ = p.packed_bias("depthwise bias", [&] {
      const Tensor bias = Tensor::empty(Dims{2, channels}, DType::kFloat32);
      std::fill(bias.data<float>(), bias.data<float>() + 2 * channels, 0.0f);
      if (p.epilogues.bias.defined())
        std::copy(p.epilogues.bias.data<float>(), p.epilogues.bias.data<float>() + channels, bias.data<float>());
      return bias;
    });
    conv_ = {plane.in_h,
             plane.in_w,
             plane.out_h,
             plane.out_w,
             channels,
             plane.kernel_h,
             plane.stride_h,
             plane.pad_h,
             plane.pad_w,
             weights_.data<float>(),
             bias_.data<float>(),
             bias_.data<float>() + channels,
             finish};
    constexpr double kNsPerTap = 0.02, kNsPerResult = 0.1;
    const double result_ns = kNsPerTap * static_cast<double>(taps) + kNsPerResult * (1 + finish.count * 2);
    parts_ = parallel_parts(rows_, result_ns * static_cast<double>(plane.out_w * channels), p.threads);
  }

  void run(const float* src, const float*, float* dst, void*) const override {
    in_parts([&](int64_t begin, int64_t end) { run_depthwise_conv(conv_, src, dst, begin, end); });
  }

  std::optional<size_t> halves_scratch_bytes() const override { return 0; }
  void run_halves(const BFloat16* src, const HalfEpilogue& finish, BFloat16* dst, void*) const override {
    in_parts([&](int64_t begin, int64_t end) { run_depthwise_halves(conv_, finish, src, dst, {begin, end}); });
  }

 private:
  template <class Run>
  void in_parts(Run&& run) const {
    constexpr int64_t kPieceRows = 256;
    parallel_run(parts_, [&](int part) {
      const int64_t first = rows_ * part / parts_;
      in_pieces(rows_ * (part + 1) / parts_ - first, kPieceRows,
                [&](int64_t begin, int64_t end) { run(first + begin, first + end); });
    });
  }

  int64_t rows_;
  Tensor weights_, bias_;
  DepthwiseConv conv_;
  int parts_ = 1;
};

}  // namespace

std::unique_ptr<ConvKernel> make_depthwise_conv(const ConvProblem& p) {
  if (!p.is_depthwise() || p.geometry.spatial() != 2 || p.epilogues.has_add) return nullptr;
  const ConvPlane plane = conv_plane_of(p);
  if (plane.kernel_h != plane.kernel_w || plane.stride_h != plane.stride_w || plane.dilation_h != 1 ||
      plane.dilation_w != 1 || plane.out_h * plane.out_w == 0)
    return nullptr;
  if (!covers_depthwise(plane.kernel_h, plane.stride_h, plane.in_channels)) return nullptr;
  const std::optional<ConvEpilogue> finish = conv_epilogue_of(p.epilogues);
  if (!finish) return nullptr;
  return std::make_unique<DepthwiseKernel>(p, plane, *finish);
}

}  // namespace tensord::kernels
