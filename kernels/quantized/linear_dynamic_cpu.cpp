// Dynamic linear layers on the CPU, direct and prepared.
#include "core/base/parallel.h"
#include "core/ops/run.h"
#include "kernels/quantized/linear_params.h"
#include "ops/pointwise.h"

namespace tensord::kernels {
namespace {

template <bool kRelu>
void run_dynamic(const ops::KernelContext&, const Tensor& x, const LinearParamsPtr& params, bool reduces_range,
                 Tensor& out) {
  if (out.numel() == 0) return;
  const DynamicLinear linear{params->weight(), params->bias_or_zeros(), reduces_range, kRelu};
  const Tensor dense = x.contiguous();
  const int64_t rows = out.numel() / params->outputs();
  const Tensor scratch = Tensor::empty(Dims{static_cast<int64_t>(linear.scratch_bytes(rows))}, DType::kUInt8);
  linear.run(dense.data<float>(), rows, out.data<float>(), scratch.raw_data(), thread_budget());
}

template <bool kRelu>
class PreparedDynamic final : public ops::PreparedCall {
 public:
  PreparedDynamic(LinearParamsPtr params, bool reduces_range, int64_t rows, int threads)
      : params_(std::move(params)),
        linear_{params_->weight(), params_->bias_or_zeros(), reduces_range, kRelu},
        rows_(rows),
        threads_(threads) {
    scratch_bytes = linear_.scratch_bytes(rows);
    const auto m = static_cast<double>(rows), n = static_cast<double>(params_->outputs()),
               k = static_cast<double>(params_->inputs());
    cost = {2 * m * n * k, n * k + 4 * m * (n + k)};
    label = kRelu ? "linear_dynamic+relu" : "linear_dynamic";
    variant = std::string(rows == 1 ? "gemv " : "gemm ") + params_->weight().matrix().kernels().name;
  }
  void run(const ops::KernelContext&, const ops::PreparedRun& memory) const override {
    linear_.run(static_cast<const float*>(memory.inputs[0]), rows_, static_cast<float*>(memory.outputs[0]),
                memory.scratch, threads_);
  }

 private:
  LinearParamsPtr params_;
  DynamicLinear linear_;
  int64_t rows_;
  int threads_;
};

bool is_plain_input(const ops::PrepareArgs& args) {
  const Tensor& x = args.arguments[0].to_tensor();
  return x.is_meta() && x.is_contiguous() && x.numel() > 0 && args.outputs[0].is_contiguous();
}

template <bool kRelu>
std::unique_ptr<ops::PreparedCall> prepare_dynamic(const ops::PrepareArgs& args) {
  if (!is_plain_input(args)) return nullptr;
  auto params = ops::Unbox<LinearParamsPtr>::get(args.arguments[1]);
  const int64_t rows = args.arguments[0].to_tensor().numel() / params->inputs();
  return std::make_unique<PreparedDynamic<kRelu>>(std::move(params), args.arguments[2].to_bool(), rows, args.threads);
}

// --- weights of float16

std::unique_ptr<ops::PreparedCall> prepare_half(const ops::PrepareArgs& args) {
  if (!is_plain_input(args)) return nullptr;
  return ops::Unbox<LinearParamsPtr>::get(args.arguments[1])
      ->half()
      .prepare(args.arguments[0].to_tensor(), Tensor(), args);
}
void run_half(const ops::KernelContext&, const Tensor& x, const LinearParamsPtr& params, Tensor& out) {
  out.copy_from(params->half().run(x, Tensor(), false));
}
void run_half_relu(const ops::KernelContext&, const Tensor& x, const LinearParamsPtr& params, Tensor& out) {
  out.copy_from(ops::relu(params->half().run(x, Tensor(), false)));
}

IMPL("quantized::linear_dynamic", DeviceKind::kCPU, &run_dynamic<false>);
PREPARE("quantized::linear_dynamic", DeviceKind::kCPU, &prepare_dynamic<false>);
IMPL("quantized::linear_relu_dynamic", DeviceKind::kCPU, &run_dynamic<true>);
PREPARE("quantized::linear_relu_dynamic", DeviceKind::kCPU, &prepare_dynamic<true>);
IMPL("quantized::linear_dynamic_fp16", DeviceKind::kCPU, &run_half);
PREPARE("quantized::linear_dynamic_fp16", DeviceKind::kCPU, &prepare_half);
IMPL("quantized::linear_relu_dynamic_fp16", DeviceKind::kCPU, &run_half_relu);

}  // namespace
}  // namespace tensord::kernels
