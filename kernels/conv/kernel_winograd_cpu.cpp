#include <algorithm>

#include "core/base/parallel.h"
#include "kernels/conv/kernel.h"

namespace tensord::kernels {
namespace {

constexpr int64_t kKernelTaps = 9;

// The side of a tile of outputs, or 0 where the plain sum is better. Transformed weights take 36/9 (side 4) or 16/9
// (side 2) times the memory, and a packed model may take 1.3 times its weights; the layers with the most channels have
// the most weights and the fewest pixels to use them for. With fewer than `least` channels the products do not outweigh
// the transforms.
int64_t winograd_tile(int64_t in, int64_t out, int64_t min) {
  constexpr int64_t kMaxFour = 128 * 128, kMaxTwo = 256 * 256;
  if (in < min || out < min) return 0;
  if (in * out <= kMaxFour) return 4;
  return in * out <= kMaxTwo ? 2 : 0;
}

class WinogradKernel final : public ConvKernel {
 public:
  WinogradKernel(const ConvProblem& p, const ConvPlane& plane, int64_t tile, const ConvEpilogue& finish) {
    variant = tile == 4 ? "winograd 4x4" : "winograd 2x2";
    conv_.in_h = plane.in_h, conv_.in_w = plane.in_w, conv_.out_h = plane.out_h, conv_.out_w = plane.out_w;
    conv_.in_channels = plane.in_channels, conv_.out_channels = plane.out_channels;
    conv_.pad_h = plane.pad_h, conv_.pad_w = plane.pad_w;
    conv_.tile = tile;
    conv_.finish = finish;
    tiles_ = plane.batch * conv_.tiles_h() * conv_.tiles_w();
    weights_ = *p.packed_weight("winograd", [&] { return pack(p); });
    // The bias, followed by zeros that stand for pixels outside of the image.
    bias_ = p.packed_bias("winograd bias", [&] {
      const int64_t out = conv_.out_channels, count = out + conv_.in_channels;
      const Tensor bias = Tensor::empty(Dims{count}, DType::kFloat32);
      std::fill(bias.data<float>(), bias.data<float>() + count, 0.0f);
      if (p.epilogues.bias.defined())
        std::copy(p.epilogues.bias.data<float>(), p.epilogues.bias.data<float>() + out, bias.data<float>());
      return bias;
    });
    conv_.weights = weights_.data<float>();
    conv_.bias = bias_.data<float>();
    conv_.zeros = conv_.bias + conv_.out_channels;
    constexpr double kNsPerFlop = 0.01;
    const double products = static_cast<double>(conv_.side() * conv_.side() * conv_.in_channels * conv_.out_channels);
    parts_ = parallel_parts(tiles_, 2 * products * kNsPerFlop, p.threads);
    scratch_bytes = static_cast<size_t>(conv_.scratch_floats() * parts_) * sizeof(float);
  }

  void run(const float* src, const float* other, float* dst, void* scratch) const override {
    parallel_run(parts_, [&](int part) {
      run_winograd_conv(conv_, src, other, dst, static_cast<float*>(scratch) + part * conv_.scratch_floats(),
                        tiles_ * part / parts_, tiles_ * (part + 1) / parts_);
    });
  }

 private:
  Tensor pack(const ConvProblem& p) const {
    const Tensor weight = p.weight.contiguous();
    const int64_t in = conv_.in_channels, out = conv_.out_channels, positions = conv_.side() * conv_.side();
    const Tensor packed = Tensor::empty(Dims{positions, in * out}, DType::kFloat32);
    const ConvWeightSource source{weight.data<float>(), p.scale(), out, in, kKernelTaps, p.turns_weight};
    parallel_for(source.panels(), 1, [&](int64_t begin, int64_t end) {
      pack_winograd_panels(conv_.tile, source, packed.data<float>(), begin, end);
    });
    return packed;
  }

  WinogradConv conv_;
  int64_t tiles_ = 0;
  int parts_ = 1;
  Tensor weights_, bias_;
};

}  // namespace

std::unique_ptr<ConvKernel> make_winograd_conv(const ConvProblem& p) {
  if (p.geometry.spatial() != 2 || p.geometry.groups != 1) return nullptr;
  const ConvPlane plane = conv_plane_of(p);
  const auto is_one = [](const Dims& list) { return list[0] == 1 && list[1] == 1; };
  if (plane.kernel_h != 3 || plane.kernel_w != 3 || !is_one(p.geometry.stride) || !is_one(p.geometry.dilation))
    return nullptr;
  constexpr int64_t kVector = 16;  // floats of the widest vectors
  const int64_t tile = winograd_tile(plane.in_channels, plane.out_channels, p.min_winograd);
  if (tile == 0 || plane.in_channels % kVector != 0 || plane.out_channels % kVector != 0) return nullptr;
  if (plane.batch * plane.out_h * plane.out_w == 0) return nullptr;
  const std::optional<ConvEpilogue> finish = conv_epilogue_of(p.epilogues);
  if (!finish) return nullptr;
  return std::make_unique<WinogradKernel>(p, plane, tile, *finish);
}

}  // namespace tensord::kernels
