// Runs the convolution of direct_cpu.cpp on tensors: pads the source, and divides the work.
#include <algorithm>

#include "core/base/cancellation.h"
#include "core/base/parallel.h"
#include "kernels/base/half_rows.h"
#include "kernels/conv/kernel.h"

namespace tensord::kernels {
namespace {

constexpr double kNsPerFlop = 0.01, kNsPerCopied = 0.3;
// Pixels whose distance is a multiple of this many floats share a few lines of the L1 cache.
constexpr int64_t kAliasedFloats = 1024;
constexpr int64_t kSkew = 16;

class DirectKernel final : public ConvKernel {
 public:
  DirectKernel(const ConvProblem& p, const ConvEpilogue& finish) : plane_(conv_plane_of(p)) {
    variant = "direct";
    reads_planes = p.has_planes;
    conv_.finish = finish;
    conv_.groups = p.geometry.groups;
    conv_.out_channels = plane_.out_channels;
    lay_out();
    pack(p);
    cut(p.threads);
    make_band(p.threads);
  }

  void run(const float* src, const float* other, float* dst, void* scratch) const override {
    if (!copies_) return run_parts(src, other, dst);
    auto* padded = static_cast<float*>(scratch);
    const int64_t in_image = plane_.in_channels * plane_.in_h * plane_.in_w;
    const int64_t out_image = plane_.out_channels * plane_.out_h * plane_.out_w;
    const std::array<int64_t, 2> groups{0, conv_pixel_groups(conv_)}, panels{0, conv_panels(conv_)};
    const auto other_at = [&](int64_t image) { return other ? other + image * out_image : nullptr; };
    if (image_parts_ > 1) {
      return parallel_run(image_parts_, [&](int part) {
        float* own = padded + part * padded_floats();
        const int64_t end = plane_.batch * (part + 1) / image_parts_;
        for (int64_t image = plane_.batch * part / image_parts_; image < end; ++image) {
          check_work_cancelled();
          run_pad_copy(copy_, src + image * in_image, own, 0, copy_.out_h);
          run_direct_conv(conv_, own, other_at(image), dst + image * out_image, groups, panels);
        }
      });
    }
    for (int64_t image = 0; image < plane_.batch; ++image) {
      check_work_cancelled();
      const double row_ns = kNsPerCopied * static_cast<double>(copy_.out_w * copy_.pixel_step);
      parallel_for_cost(copy_.out_h, row_ns, [&](int64_t begin, int64_t end) {
        run_pad_copy(copy_, src + image * in_image, padded, begin, end);
      });
      run_parts(padded, other_at(image), dst + image * out_image);
    }
  }

  std::optional<size_t> halves_scratch_bytes() const override {
    if (band_.out_h == 0) return std::nullopt;
    return static_cast<size_t>(source_floats() + padded_floats() + band_floats() * band_parts_) * sizeof(float);
  }
  // Converts the source to float32, then computes bands of result rows, which are rounded while they are in the cache.
  void run_halves(const BFloat16* src, const HalfEpilogue& finish, BFloat16* dst, void* scratch) const override {
    auto* const wide = static_cast<float*>(scratch);
    float *const padded = wide + source_floats(), *const bands = padded + padded_floats();
    const int64_t in_image = plane_.in_channels * plane_.in_h * plane_.in_w, channels = conv_.out_channels;
    const int64_t count = (conv_.out_h + band_.out_h - 1) / band_.out_h;
    widen_row(src, wide, plane_.batch * in_image);
    for (int64_t image = 0; image < plane_.batch; ++image) {
      run_pad_copy(copy_, wide + image * in_image, padded, 0, copy_.out_h);
      parallel_run(band_parts_, [&](int part) {
        float* const own = bands + part * band_floats();
        for (int64_t i = count * part / band_parts_; i < count * (part + 1) / band_parts_; ++i) {
          check_work_cancelled();
          const int64_t y = i * band_.out_h, rows = std::min(band_.out_h, conv_.out_h - y);
          const int64_t groups = conv_pixel_groups(band_) / band_.out_h * rows;
          run_direct_conv(band_, padded + y * conv_.row_step, nullptr, own, {0, groups}, {0, conv_panels(band_)});
          HalfEpilogue steps = finish;
          const int64_t at = (image * conv_.out_h + y) * conv_.out_w * channels;
          if (steps.other != nullptr) steps.other = static_cast<const BFloat16*>(steps.other) + at;
          finish_rows({own, rows * conv_.out_w, channels, channels}, steps, dst + at, channels);
        }
      });
    }
  }

 private:
  // The number of result rows that stay in the cache; 0 where there are few rows, or no padded image with rows.
  void make_band(int threads) {
    band_.out_h = 0;
    if (!copies_ || conv_.out_h != plane_.out_h) return;
    constexpr int64_t kFloats = 32 * 1024, kMinBands = 4;
    const int64_t rows = std::clamp<int64_t>(kFloats / (conv_.out_w * conv_.out_channels), 1, conv_.out_h);
    const int64_t bands = (conv_.out_h + rows - 1) / rows;
    if (bands < kMinBands || bands < 2 * threads) return;
    band_ = conv_;
    band_.out_h = rows;
    const double flops = 2.0 * static_cast<double>(conv_.taps.size()) * static_cast<double>(conv_.depth) *
                         static_cast<double>(band_floats());
    band_parts_ = parallel_parts(bands, flops * kNsPerFlop, threads);
  }
  int64_t source_floats() const { return rounded_up(plane_.batch * plane_.in_channels * plane_.in_h * plane_.in_w); }
  int64_t band_floats() const { return rounded_up(band_.out_h * band_.out_w * band_.out_channels); }
  static int64_t rounded_up(int64_t floats) {
    constexpr int64_t kAlign = 16;
    return (floats + kAlign - 1) / kAlign * kAlign;
  }

  // The places of pixels and taps, in the source or in a padded copy of an image.
  void lay_out() {
    const ConvPlane& p = plane_;
    const int64_t span_h = (p.out_h - 1) * p.stride_h + (p.kernel_h - 1) * p.dilation_h + 1;
    const int64_t span_w = (p.out_w - 1) * p.stride_w + (p.kernel_w - 1) * p.dilation_w + 1;
    const bool is_point = p.kernel_h == 1 && p.kernel_w == 1 && p.pad_h == 0 && p.pad_w == 0 && span_h <= p.in_h &&
                          span_w <= p.in_w && p.stride_h == p.stride_w;
    const bool is_aliased = p.in_channels * p.stride_w % kAliasedFloats == 0 && !reads_planes;
    const bool is_padded = p.pad_h > 0 || p.pad_w > 0 || span_h > p.in_h || span_w > p.in_w;
    copies_ = is_padded || reads_planes || (is_aliased && p.out_w * p.out_h > 1);
    copy_ = {p.in_channels, p.in_h, p.in_w, p.pad_h, p.pad_w, span_h, span_w, p.in_channels, 1, reads_planes};
    const bool is_skewed = copies_ && !reads_planes && p.in_channels * p.stride_w % (kAliasedFloats / 2) == 0;
    if (is_skewed) copy_.pixel_step = p.in_channels + kSkew;
    int64_t stride_h = p.stride_h, stride_w = p.stride_w, row = p.in_w;
    if (copies_ && is_point) {
      copy_.stride = p.stride_w;
      copy_.out_h = p.out_h, copy_.out_w = p.out_w;
      stride_h = stride_w = 1;
    }
    if (copies_) row = copy_.out_w;
    conv_.batch = copies_ ? 1 : p.batch;
    conv_.out_h = p.out_h, conv_.out_w = p.out_w;
    conv_.pixel_step = stride_w * copy_.pixel_step;
    conv_.row_step = stride_h * row * copy_.pixel_step;
    conv_.image_step = p.in_h * p.in_w * p.in_channels;
    if (is_point && stride_w == 1) {
      conv_.out_w *= conv_.out_h * conv_.batch;
      conv_.out_h = conv_.batch = 1;
    } else if (conv_.out_w == 1) {
      std::swap(conv_.out_h, conv_.out_w);
      std::swap(conv_.row_step, conv_.pixel_step);
    }
    add_taps(row);
  }

  void add_taps(int64_t row) {
    const ConvPlane& p = plane_;
    // The taps of a row are one run of floats if there is no gap between them.
    const bool joins = conv_.groups == 1 && p.dilation_w == 1 && copy_.pixel_step == p.in_channels;
    conv_.depth = joins ? p.kernel_w * p.in_channels : p.in_channels / conv_.groups;
    for (int64_t y = 0; y < p.kernel_h; ++y) {
      for (int64_t x = 0; x < (joins ? 1 : p.kernel_w); ++x)
        conv_.taps.push_back((y * p.dilation_h * row + x * p.dilation_w) * copy_.pixel_step);
    }
  }

  void pack(const ConvProblem& p) {
    const int64_t rows = static_cast<int64_t>(conv_.taps.size()) * conv_.depth, columns = conv_.group_channels();
    weights_ = *p.packed_weight("panels", [&] {
      const Tensor weight = p.weight.contiguous();
      const int64_t floats = conv_panel_floats(rows, columns), in = weight.sizes()[1], taps = rows / in;
      const Tensor panels = Tensor::empty(Dims{conv_.groups, floats}, DType::kFloat32);
      for (int64_t g = 0; g < conv_.groups; ++g) {
        const ConvWeightSource source{weight.data<float>() + g * columns * rows,
                                      p.scale() ? p.scale() + g * columns : nullptr, columns, in, taps};
        parallel_for(source.panels(), 1, [&](int64_t begin, int64_t end) {
          pack_conv_panels(source, panels.data<float>() + g * floats, begin, end);
        });
      }
      return panels;
    });
    bias_ = p.packed_bias("panel bias", [&] {
      const int64_t width = conv_panel_width(), padded = (columns + width - 1) / width * width;
      const Tensor bias = Tensor::empty(Dims{conv_.groups, padded}, DType::kFloat32);
      float* to = bias.data<float>();
      std::fill(to, to + bias.numel(), 0.0f);
      const float* from = p.epilogues.bias.defined() ? p.epilogues.bias.data<float>() : nullptr;
      for (int64_t n = 0; from && n < conv_.out_channels; ++n) to[n / columns * padded + n % columns] = from[n];
      return bias;
    });
    conv_.weights = weights_.data<float>();
    conv_.bias = bias_.data<float>();
  }

  int64_t padded_floats() const { return rounded_up(copy_.out_h * copy_.out_w * copy_.pixel_step); }

  void cut(int threads) {
    const int64_t groups = conv_pixel_groups(conv_), panels = conv_panels(conv_), pairs = (groups + 1) / 2;
    const double flops = 2.0 * static_cast<double>(conv_.batch * conv_.out_h * conv_.out_w) *
                         static_cast<double>(conv_.taps.size()) * static_cast<double>(conv_.depth * conv_.out_channels);
    const auto parts_of = [&](int64_t count) {
      return parallel_parts(count, flops * kNsPerFlop / static_cast<double>(count), threads);
    };
    const auto balance = [&](int64_t count) {
      const int64_t parts = parts_of(count), longest = (count + parts - 1) / parts;
      return static_cast<double>(count) / static_cast<double>(longest);
    };
    // Divided by pixels, each thread reads all weights; divided by panels, each reads all pixels.
    const bool has_more_weights = conv_.out_channels / conv_.groups * static_cast<int64_t>(conv_.taps.size()) >
                                  conv_.batch * conv_.out_h * conv_.out_w;
    cuts_panels_ = balance(panels) > balance(pairs) || (balance(panels) == balance(pairs) && has_more_weights);
    parts_ = parts_of(cuts_panels_ ? panels : pairs);
    if (!copies_) return;
    if (plane_.batch > 1) image_parts_ = parallel_parts(plane_.batch, flops * kNsPerFlop, threads);
    scratch_bytes = static_cast<size_t>(padded_floats() * image_parts_) * sizeof(float);
  }

  void run_parts(const float* src, const float* other, float* dst) const {
    const int64_t groups = conv_pixel_groups(conv_), panels = conv_panels(conv_), pairs = (groups + 1) / 2;
    parallel_run(parts_, [&](int part) {
      std::array<int64_t, 2> some_groups{0, groups}, some_panels{0, panels};
      if (cuts_panels_)
        some_panels = {panels * part / parts_, panels * (part + 1) / parts_};
      else
        some_groups = {pairs * part / parts_ * 2, std::min(groups, pairs * (part + 1) / parts_ * 2)};
      run_direct_conv(conv_, src, other, dst, some_groups, some_panels);
    });
  }

  ConvPlane plane_;
  DirectConv conv_;
  DirectConv band_;  // some rows of conv_, from any row on
  PadCopy copy_;
  bool copies_ = false, cuts_panels_ = false;
  int parts_ = 1, image_parts_ = 1, band_parts_ = 1;
  Tensor weights_, bias_;
};

}  // namespace

std::unique_ptr<ConvKernel> make_direct_conv(const ConvProblem& p) {
  if (p.geometry.spatial() > 2 || p.output.size() != p.geometry.spatial() + 2) return nullptr;
  // Half-empty vectors do not pay off.
  constexpr int64_t kMinGroup = 8, kMaxPlanes = 4;
  if (p.geometry.groups > 1 && p.weight.sizes()[0] / p.geometry.groups < kMinGroup) return nullptr;
  for (const int64_t size : p.output) {
    if (size == 0) return nullptr;
  }
  const std::optional<ConvEpilogue> finish = conv_epilogue_of(p.epilogues);
  if (!finish) return nullptr;
  ConvProblem direct = p;
  direct.has_planes = p.has_planes && p.input[1] <= kMaxPlanes;
  return std::make_unique<DirectKernel>(direct, *finish);
}

}  // namespace tensord::kernels
