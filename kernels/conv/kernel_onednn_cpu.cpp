#include "core/base/parallel.h"
#include "kernels/conv/kernel.h"
#include "kernels/conv/onednn.h"
#include "kernels/gemm/packed_gemm_tile.h"

namespace tensord::kernels {
namespace {

class OnednnConv final : public ConvKernel {
 public:
  explicit OnednnConv(const ConvProblem& p) {
    const auto describe = [&p](const Tensor& weight) { return conv_weight_desc(weight, p.geometry); };
    ConvDescs descs{
        onednn_desc(p.input, last_strides(p.input)),
        MemoryDesc(onednn_sizes(describe(p.weight)), dnnl::memory::data_type::f32, dnnl::memory::format_tag::any),
        MemoryDesc(), onednn_desc(p.output, last_strides(p.output))};
    const Tensor& bias = p.epilogues.bias;
    if (bias.defined()) descs.bias = onednn_desc(bias.sizes(), bias.strides());
    const auto pd = conv_primitive_desc<dnnl::convolution_forward>(
        p.geometry, descs, dnnl::algorithm::convolution_direct, p.epilogues.attributes());
    const Tensor packed = onednn_weight(p.store, pd.weights_desc(), p.weight, p.epilogues.scale, describe);
    plan_ = std::make_unique<PackedPlan>(dnnl::convolution_forward(pd), descs.src, descs.dst, pd.scratchpad_desc(),
                                         std::pair(pd.weights_desc(), packed), std::pair(descs.bias, bias));
    const std::vector<EpilogueStep>& steps = p.epilogues.steps;
    steps_.assign(steps.begin() + static_cast<int64_t>(p.epilogues.onednn_steps()), steps.end());
    columns_ = p.output[1];
    rows_ = columns_ > 0 ? checked_numel(p.output) / columns_ : 0;
    if (!steps_.empty()) no_bias_.resize(static_cast<size_t>(columns_));
    scratch_bytes = plan_->scratch_bytes();
    sums_in_place = p.epilogues.has_add;
    variant = "onednn";
  }

  void run(const float* src, const float*, float* dst, void* scratch) const override {
    plan_->run(src, dst, scratch);
    if (!steps_.empty()) finish(dst);
  }

 private:
  // The steps that are not given to oneDNN.
  void finish(float* dst) const {
    constexpr double kNsPerFloat = 0.3;
    parallel_for_cost(rows_, kNsPerFloat * static_cast<double>(columns_), [&](int64_t begin, int64_t end) {
      float* const rows = dst + begin * columns_;
      finish_tile({.tile = rows,
                   .tile_stride = columns_,
                   .rows = end - begin,
                   .columns = columns_,
                   .bias = no_bias_.data(),
                   .steps = steps_.data(),
                   .step_count = static_cast<int64_t>(steps_.size()),
                   .out = rows,
                   .out_stride = columns_});
    });
  }

  std::unique_ptr<PackedPlan> plan_;
  std::vector<EpilogueStep> steps_;
  int64_t rows_, columns_;      // of the result, in the order N, spatial…, C
  std::vector<float> no_bias_;  // already added
};

}  // namespace

std::unique_ptr<ConvKernel> make_onednn_conv(const ConvProblem& problem) {
  return std::make_unique<OnednnConv>(problem);
}

}  // namespace tensord::kernels
