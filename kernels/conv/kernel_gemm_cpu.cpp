// Convolutions in bf16 and int8: products of pixels with packed weights (packed_gemm.h), which quantizes or rounds the
// rows of pixels as it reads them. For kernels of several taps the rows of all taps are laid out first, which pays off
// from some number of output channels on.
#include <algorithm>
#include <cstring>

#include "core/base/parallel.h"
#include "kernels/conv/kernel.h"
#include "kernels/gemm/packed_gemm.h"

namespace tensord::kernels {
namespace {

class GemmKernel final : public ConvKernel {
 public:
  GemmKernel(const ConvProblem& p, const ConvPlane& plane) : plane_(plane), precision_(p.precision) {
    const int64_t taps = plane.kernel_h * plane.kernel_w, depth = taps * plane.in_channels;
    const int64_t pixels = plane.batch * plane.out_h * plane.out_w;
    lays_out_ = taps > 1 || plane.pad_h > 0 || plane.pad_w > 0;
    RowLayout rows;
    rows.rows = pixels;
    rows.row_stride = depth;
    if (!lays_out_ && (plane.stride_h != 1 || plane.stride_w != 1)) {
      for (int64_t i = 0; i < pixels; ++i) rows.offsets.push_back(pixel_at(i));
    }
    gemm_ = std::make_unique<PackedGemm>(p.packed_weight<PackedMatrix>("taps", [&] { return pack(p); }), epilogue_of(p),
                                         std::move(rows), pixels, p.threads);
    name_ = gemm_->variant();
    variant = name_.c_str();
    constexpr size_t kAlign = 64;
    if (lays_out_) rows_bytes_ = (static_cast<size_t>(pixels * depth) * sizeof(float) + kAlign - 1) / kAlign * kAlign;
    scratch_bytes = rows_bytes_ + gemm_->scratch_bytes();
  }

  void run(const float* src, const float* other, float* dst, void* scratch) const override {
    if (lays_out_) lay_out(src, static_cast<float*>(scratch));
    gemm_->run({.x = lays_out_ ? static_cast<const float*>(scratch) : src, .other = other, .y = dst},
               static_cast<char*>(scratch) + rows_bytes_);
  }

  std::optional<size_t> halves_scratch_bytes() const override {
    if (word_type(precision_) != WordType::kBf16) return std::nullopt;
    return gemm_->scratch_bytes();
  }
  // Lays rows out where they are multiplied, since nothing has to be rounded.
  void run_halves(const BFloat16* src, const HalfEpilogue& finish, BFloat16* dst, void* scratch) const override {
    const RowLoader load = [this, src](int64_t first, int64_t end, BFloat16* out, int64_t stride) {
      for (int64_t i = first; i < end; ++i, out += stride) copy_pixel(src, i, out);
    };
    gemm_->run({.load = &load, .halves = dst, .finish = finish}, scratch);
  }

 private:
  // The input pixel under the first tap of an output pixel.
  int64_t pixel_at(int64_t index) const {
    const ConvPlane& p = plane_;
    const int64_t x = index % p.out_w, y = index / p.out_w % p.out_h, image = index / (p.out_w * p.out_h);
    return ((image * p.in_h + y * p.stride_h) * p.in_w + x * p.stride_w) * p.in_channels;
  }

  void lay_out(const float* src, float* rows) const {
    const ConvPlane& p = plane_;
    const int64_t depth = p.kernel_h * p.kernel_w * p.in_channels;
    constexpr double kNsPerFloat = 0.15;
    parallel_for_cost(p.batch * p.out_h * p.out_w, kNsPerFloat * static_cast<double>(depth),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i) copy_pixel(src, i, rows + i * depth);
                      });
  }

  // The pixels that the taps of an output pixel read.
  template <class T>
  void copy_pixel(const T* src, int64_t index, T* to) const {
    const ConvPlane& p = plane_;
    const int64_t x = index % p.out_w * p.stride_w - p.pad_w, y = index / p.out_w % p.out_h * p.stride_h - p.pad_h;
    const T* image = src + index / (p.out_w * p.out_h) * p.in_h * p.in_w * p.in_channels;
    const size_t bytes = static_cast<size_t>(p.in_channels) * sizeof(T);
    for (int64_t i = 0; i < p.kernel_h; ++i) {
      for (int64_t j = 0; j < p.kernel_w; ++j, to += p.in_channels) {
        const int64_t row = y + i * p.dilation_h, column = x + j * p.dilation_w;
        if (row >= 0 && row < p.in_h && column >= 0 && column < p.in_w)
          std::memcpy(to, image + (row * p.in_w + column) * p.in_channels, bytes);
        else
          std::fill_n(to, p.in_channels, T(0));
      }
    }
  }

  PackedMatrix pack(const ConvProblem& p) const {
    const Tensor weight = p.weight.contiguous();
    const int64_t out = weight.sizes()[0], in = weight.sizes()[1], taps = weight.numel() / (out * in);
    std::vector<float> rows(static_cast<size_t>(weight.numel()));
    for (int64_t n = 0; n < out; ++n) {
      const float* from = weight.data<float>() + n * in * taps;
      float* to = rows.data() + n * in * taps;
      for (int64_t c = 0; c < in; ++c) {
        for (int64_t t = 0; t < taps; ++t) to[t * in + c] = from[c * taps + t];
      }
    }
    return PackedMatrix(Matrix{rows.data(), out, in * taps, in * taps, 1}, DType::kFloat32, p.scale(), p.precision);
  }

  static std::shared_ptr<const GemmEpilogue> epilogue_of(const ConvProblem& p) {
    auto finish = std::make_shared<GemmEpilogue>();
    finish->bias.assign(static_cast<size_t>(p.output[1]), 0.0f);
    if (p.epilogues.bias.defined())
      std::copy_n(p.epilogues.bias.data<float>(), finish->bias.size(), finish->bias.begin());
    if (p.epilogues.has_add) finish->steps.push_back({EpilogueStep::Kind::kAdd, 0, 0});
    finish->steps.insert(finish->steps.end(), p.epilogues.steps.begin(), p.epilogues.steps.end());
    return finish;
  }

  ConvPlane plane_;
  ops::Precision precision_;
  bool lays_out_ = false;
  size_t rows_bytes_ = 0;
  std::unique_ptr<PackedGemm> gemm_;
  std::string name_;
};

}  // namespace

std::unique_ptr<ConvKernel> make_gemm_conv(const ConvProblem& p) {
  if (p.precision == ops::Precision::kF32 || p.geometry.spatial() > 2 || p.geometry.groups != 1) return nullptr;
  if (p.precision == ops::Precision::kBf16 && tile_kernels(WordType::kBf16).widens) return nullptr;
  // With fewer channels the f32 kernels are as fast.
  constexpr int64_t kMinIn = 16, kMinOut = 16;
  const ConvPlane plane = conv_plane_of(p);
  if (plane.in_channels < kMinIn || plane.out_channels < kMinOut) return nullptr;
  if (plane.batch * plane.out_h * plane.out_w == 0) return nullptr;
  return std::make_unique<GemmKernel>(p, plane);
}

}  // namespace tensord::kernels
