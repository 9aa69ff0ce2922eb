#include "kernels/conv/kernel.h"
#include "kernels/conv/onednn.h"

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
    scratch_bytes = plan_->scratch_bytes();
    sums_in_place = p.epilogues.has_add;
    variant = "onednn";
  }

  void run(const float* src, const float*, float* dst, void* scratch) const override { plan_->run(src, dst, scratch); }

 private:
  std::unique_ptr<PackedPlan> plan_;
};

}  // namespace

std::unique_ptr<ConvKernel> make_onednn_conv(const ConvProblem& problem) {
  return std::make_unique<OnednnConv>(problem);
}

}  // namespace tensord::kernels
