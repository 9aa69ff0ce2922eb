// Linear layers with weights of 8 bits, or of float16, on tensors of float32. The former round their input by one
// scale for all of it, so a row's result hangs on the other rows.
#include <optional>

#include "core/base/parallel.h"
#include "core/ops/run.h"
#include "core/ops/samples.h"
#include "kernels/quantized/linear_params.h"

namespace tensord::kernels {
namespace {

using ops::TensorMeta;
using ops::Value;
using MaybeTensor = std::optional<Tensor>;

TensorMeta infer_linear(const Tensor& x, const LinearParams& params) {
  check(x.dtype() == DType::kFloat32, "expected an input of float32, but got ", name_of(x.dtype()));
  check(x.ndim() >= 1 && x.sizes().back() == params.inputs(), "expected an input with ", params.inputs(),
        " numbers in its last dimension, but got ", x.sizes());
  Dims sizes = x.sizes();
  sizes.back() = params.outputs();
  return {sizes, DType::kFloat32, {}, x.device()};
}
TensorMeta infer_dynamic(const Tensor& x, const LinearParamsPtr& params, bool) {
  params->weight();
  return infer_linear(x, *params);
}
TensorMeta infer_half(const Tensor& x, const LinearParamsPtr& params) {
  params->half();
  return infer_linear(x, *params);
}

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

OP("quantized::linear_dynamic(Tensor X, __torch__.torch.classes.quantized.LinearPackedParamsBase W_prepack, "
   "bool reduce_range=False) -> Tensor")
    .set<ops::MixesSamples>()
    .infer(&infer_dynamic)
    .constant_result();
KERNEL("quantized::linear_dynamic", DeviceKind::kCPU, &run_dynamic<false>);
PREPARE("quantized::linear_dynamic", DeviceKind::kCPU, &prepare_dynamic<false>);
OP("quantized::linear_relu_dynamic(Tensor X, __torch__.torch.classes.quantized.LinearPackedParamsBase W_prepack, "
   "bool reduce_range=False) -> Tensor")
    .set<ops::MixesSamples>()
    .infer(&infer_dynamic)
    .constant_result();
KERNEL("quantized::linear_relu_dynamic", DeviceKind::kCPU, &run_dynamic<true>);
PREPARE("quantized::linear_relu_dynamic", DeviceKind::kCPU, &prepare_dynamic<true>);

// --- weights of float16: a product of float32 with the rounded weight

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
  out.copy_from(ops::call("aten::relu", params->half().run(x, Tensor(), false)));
}

OP("quantized::linear_dynamic_fp16(Tensor X, __torch__.torch.classes.quantized.LinearPackedParamsBase W_prepack) "
   "-> Tensor")
    .infer(&infer_half)
    .constant_result()
    .set<ops::KeepsSamples>(ops::always_keeps_samples);
KERNEL("quantized::linear_dynamic_fp16", DeviceKind::kCPU, &run_half);
PREPARE("quantized::linear_dynamic_fp16", DeviceKind::kCPU, &prepare_half);
OP("quantized::linear_relu_dynamic_fp16(Tensor X, __torch__.torch.classes.quantized.LinearPackedParamsBase W_prepack) "
   "-> Tensor")
    .infer(&infer_half)
    .constant_result();
KERNEL("quantized::linear_relu_dynamic_fp16", DeviceKind::kCPU, &run_half_relu);

// --- packing

Value pack(const Value& weight, const Value& bias) {
  return Value(IntrusivePtr<ops::OpaqueObject>(make_intrusive<LinearParams>(weight, bias)));
}

void pack_quantized(std::span<const Value> v, std::vector<Value>& returns) { returns.push_back(pack(v[0], v[1])); }

OP("quantized::linear_prepack(Tensor W, Tensor? B=None) -> "
   "__torch__.torch.classes.quantized.LinearPackedParamsBase")
    .direct([](const Tensor& weight, const MaybeTensor&) -> Value {
      fail(ErrorCode::kInvalidArgument, "expected a weight of qint8, but got ", name_of(weight.dtype()));
    });
QUANTIZED("quantized::linear_prepack").direct(&pack_quantized);
OP("quantized::linear_prepack_fp16(Tensor W, Tensor? B=None) -> "
   "__torch__.torch.classes.quantized.LinearPackedParamsBase")
    .direct([](const Tensor& weight, const MaybeTensor& bias) { return pack(weight, Value(bias)); });

OP("quantized::linear_unpack(__torch__.torch.classes.quantized.LinearPackedParamsBase W_prepack) -> (Tensor W_origin, "
   "Tensor? B_origin)")
    .direct([](const LinearParamsPtr& params) {
      return ops::Returns{{Value(IntrusivePtr<ops::OpaqueObject>(params->weight().tensor())), Value(params->bias())}};
    });
OP("quantized::linear_unpack_fp16(__torch__.torch.classes.quantized.LinearPackedParamsBase W_prepack) -> "
   "(Tensor W_origin, Tensor? B_origin)")
    .direct([](const LinearParamsPtr& params) {
      params->half();
      return ops::Returns{{Value(params->half_weight()), Value(params->bias())}};
    });

}  // namespace
}  // namespace tensord::kernels
