#pragma once

#include <memory>
#include <optional>
#include <span>

#include "kernels/base/half_epilogue.h"
#include "kernels/conv/conv.h"
#include "kernels/conv/simd.h"
#include "kernels/onednn/packed_plan.h"

// Convolutions of known shape, on operands in memory order N, spatial…, C.
namespace tensord::kernels {

// One algorithm for one convolution. Immutable; any number of threads may run it at once.
class ConvKernel {
 public:
  virtual ~ConvKernel() = default;
  // `other` is null when nothing is added.
  virtual void run(const float* src, const float* other, float* dst, void* scratch) const = 0;
  // The bytes of scratch that run_halves needs; nothing if it only reads and writes float32.
  virtual std::optional<size_t> halves_scratch_bytes() const { return std::nullopt; }
  // In bfloat16. `finish.other` has the layout of dst and may be dst; null unless adds_halves.
  virtual void run_halves(const BFloat16*, const HalfEpilogue&, BFloat16*, void* /*scratch*/) const {
    fail(ErrorCode::kInternal, variant, " does not read halves");
  }

  size_t scratch_bytes = 0;    // memory for `scratch`, aligned to 64
  bool sums_in_place = false;  // run takes the other tensor in dst instead of `other`
  bool adds_halves = true;     // run_halves takes `finish.other`
  bool reads_planes = false;   // src lies as N, C, spatial…
  const char* variant = "";
};

// The inputs of make_conv_kernel. The caller keeps the objects alive while it makes kernels.
struct ConvProblem {
  const ConvGeometry& geometry;
  const Tensor& weight;  // in the archive's layout
  const Epilogues& epilogues;
  ops::PackStore* store;    // holds packed weights; null: packed anew
  Dims input, output;       // sizes
  bool has_planes = false;  // the input is contiguous (planes)
  int threads = 1;
  ops::Precision precision = ops::Precision::kF32;
  // The weight is that of the convolution whose input gradient this one computes; only for Winograd's kernel.
  bool turns_weight = false;
  // The smallest number of input and output channels for Winograd's kernel; the default is for packed convolutions,
  // which other kernels are fast for.
  int64_t min_winograd = 32;

  // The weights in a kernel's layout, and the bias: the result of `make`, made once.
  template <class T = Tensor, class Make>
  std::shared_ptr<const T> packed_weight(const char* kind, Make&& make) const {
    const Tensor of[] = {weight, epilogues.scale};
    return packed<T>(kind, of, make);
  }
  template <class Make>
  Tensor packed_bias(const char* kind, Make&& make) const {
    const Tensor of[] = {weight, epilogues.bias};
    return *packed<Tensor>(kind, of, make);
  }

  // The factors of batch norm for each output channel, or null.
  const float* scale() const { return epilogues.scale.defined() ? epilogues.scale.data<float>() : nullptr; }
  bool is_depthwise() const { return geometry.groups > 1 && weight.sizes()[1] == 1 && weight.sizes()[0] == input[1]; }

 private:
  template <class T, class Make>
  std::shared_ptr<const T> packed(const char* kind, std::span<const Tensor> of, Make&& make) const {
    const auto made = [&] { return std::make_shared<const T>(make()); };
    if (!store) return made();
    return store->get<T>(concat("conv ", kind, " groups ", geometry.groups, " ", static_cast<int>(precision)), of,
                         made);
  }
};

// Strides of memory order N, spatial…, C, for one spatial dimension too.
Dims last_strides(const Dims& sizes);

// The best kernel for the problem. The choice depends on the weights first, so that one convolution does not keep its
// weights in several layouts. Throws dnnl::error.
std::unique_ptr<ConvKernel> make_conv_kernel(const ConvProblem& problem);

// Each returns null if it does not cover the problem; oneDNN covers all.
std::unique_ptr<ConvKernel> make_onednn_conv(const ConvProblem& problem);
std::unique_ptr<ConvKernel> make_direct_conv(const ConvProblem& problem);
std::unique_ptr<ConvKernel> make_depthwise_conv(const ConvProblem& problem);
std::unique_ptr<ConvKernel> make_winograd_conv(const ConvProblem& problem);
// Only for other precisions than f32.
std::unique_ptr<ConvKernel> make_gemm_conv(const ConvProblem& problem);

// The functions after the sum, if the vector code has them.
std::optional<ConvEpilogue> conv_epilogue_of(const Epilogues& epilogues);
// A convolution over one dimension as one over two, the first of size 1.
struct ConvPlane {
  int64_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_h, pad_w;
  int64_t batch, in_channels, in_h, in_w, out_channels, out_h, out_w;
};
ConvPlane conv_plane_of(const ConvProblem& problem);

}  // namespace tensord::kernels
