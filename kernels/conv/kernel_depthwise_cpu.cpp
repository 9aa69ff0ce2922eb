#include <algorithm>

#include "core/base/cancellation.h"
#include "core/base/parallel.h"
#include "kernels/base/half_rows.h"
#include "kernels/conv/kernel.h"

namespace tensord::kernels {
namespace {

class DepthwiseKernel final : public ConvKernel {
 public:
  DepthwiseKernel(const ConvProblem& p, const ConvPlane& plane, const ConvEpilogue& finish)
      : batch_(plane.batch), rows_(plane.batch * plane.out_h) {
    variant = "depthwise";
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
    constexpr int64_t kPieceRows = 256;
    parallel_run(parts_, [&](int part) {
      const int64_t first = rows_ * part / parts_;
      in_pieces(rows_ * (part + 1) / parts_ - first, kPieceRows,
                [&](int64_t begin, int64_t end) { run_depthwise_conv(conv_, src, dst, first + begin, first + end); });
    });
  }

  std::optional<size_t> halves_scratch_bytes() const override {
    return static_cast<size_t>((band_input_floats() + band_floats()) * parts_) * sizeof(float);
  }
  // Works on bands of rows, which are converted and rounded while they are in the cache.
  void run_halves(const BFloat16* src, const HalfEpilogue& finish, BFloat16* dst, void* scratch) const override {
    const int64_t bands = (conv_.out_h + band_rows() - 1) / band_rows(), count = batch_ * bands;
    parallel_run(parts_, [&](int part) {
      float* const wide = static_cast<float*>(scratch) + part * (band_input_floats() + band_floats());
      for (int64_t i = count * part / parts_; i < count * (part + 1) / parts_; ++i) {
        check_work_cancelled();
        run_band(src, finish, dst, i / bands, i % bands * band_rows(), wide);
      }
    });
  }

 private:
  int64_t band_rows() const {
    constexpr int64_t kFloats = 64 * 1024;
    return std::clamp<int64_t>(kFloats / ((conv_.stride * conv_.in_w + conv_.out_w) * conv_.channels), 1, conv_.out_h);
  }
  int64_t band_input_floats() const {
    const int64_t rows = std::min((band_rows() - 1) * conv_.stride + conv_.kernel, conv_.in_h);
    return rounded_up(rows * conv_.in_w * conv_.channels);
  }
  int64_t band_floats() const { return rounded_up(band_rows() * conv_.out_w * conv_.channels); }
  static int64_t rounded_up(int64_t floats) {
    constexpr int64_t kAlign = 16;
    return (floats + kAlign - 1) / kAlign * kAlign;
  }

  // The rows of one image from `first` on.
  void run_band(const BFloat16* src, const HalfEpilogue& finish, BFloat16* dst, int64_t image, int64_t first,
                float* wide) const {
    const int64_t rows = std::min(band_rows(), conv_.out_h - first), channels = conv_.channels;
    const int64_t top = first * conv_.stride - conv_.pad_h, line = conv_.in_w * channels;
    const int64_t begin = std::clamp<int64_t>(top, 0, conv_.in_h);
    const int64_t end = std::clamp<int64_t>(top + (rows - 1) * conv_.stride + conv_.kernel, begin, conv_.in_h);
    DepthwiseConv band = conv_;
    band.in_h = end - begin, band.out_h = rows, band.pad_h = begin - top;
    widen_row(src + (image * conv_.in_h + begin) * line, wide, (end - begin) * line);
    float* const out = wide + band_input_floats();
    run_depthwise_conv(band, wide, out, 0, rows);
    HalfEpilogue steps = finish;
    const int64_t at = (image * conv_.out_h + first) * conv_.out_w * channels;
    if (steps.other != nullptr) steps.other = static_cast<const BFloat16*>(steps.other) + at;
    finish_rows({out, rows * conv_.out_w, channels, channels}, steps, dst + at, channels);
  }

  int64_t batch_, rows_;
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
