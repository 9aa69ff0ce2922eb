// Linear layers with 8-bit or float16 weights on float32 tensors. The 8-bit ones round the whole input by one scale, so
// a row's result depends on the other rows. Schemas, shapes and packing.
#include <optional>

#include "core/ops/attributes/batch_independence.h"
#include "core/ops/run.h"
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

OP("quantized::linear_dynamic").set<ops::MixesSamples>().infer(&infer_dynamic).constant_result();
OP("quantized::linear_relu_dynamic").set<ops::MixesSamples>().infer(&infer_dynamic).constant_result();

// --- weights of float16: a product of float32 with the rounded weight

OP("quantized::linear_dynamic_fp16")
    .infer(&infer_half)
    .constant_result()
    .set<ops::BatchIndependent>(ops::always_batch_independent);
OP("quantized::linear_relu_dynamic_fp16").infer(&infer_half).constant_result();

// --- packing

Value pack(const Value& weight, const Value& bias) {
  return Value(IntrusivePtr<ops::OpaqueObject>(make_intrusive<LinearParams>(weight, bias)));
}

void pack_quantized(std::span<const Value> v, std::vector<Value>& returns) { returns.push_back(pack(v[0], v[1])); }

OP("quantized::linear_prepack").impl([](const Tensor& weight, const MaybeTensor&) -> Value {
  fail(ErrorCode::kInvalidArgument, "expected a weight of qint8, but got ", name_of(weight.dtype()));
});
IMPL("quantized::linear_prepack", ops::kQuantizedCPU, &pack_quantized);
OP("quantized::linear_prepack_fp16").impl([](const Tensor& weight, const MaybeTensor& bias) {
  return pack(weight, Value(bias));
});

OP("quantized::linear_unpack").impl([](const LinearParamsPtr& params) {
  return ops::Returns{{Value(Tensor(params->weight().tensor())), Value(params->bias())}};
});
OP("quantized::linear_unpack_fp16").impl([](const LinearParamsPtr& params) {
  params->half();
  return ops::Returns{{Value(params->half_weight()), Value(params->bias())}};
});

}  // namespace
}  // namespace tensord::kernels
