// batch_norm and instance_norm. The statistics become one scale and shift for each channel, which the elementwise
// formula "affine" applies; so any memory order works.
#include <vector>

#include "core/ops/attributes/batch_independence.h"
#include "core/ops/attributes/rank.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/norm/batch.h"
#include "kernels/norm/norm_gradient.h"
#include "ops/norm.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::TensorMeta;
using MaybeTensor = std::optional<Tensor>;

TensorMeta infer_batch_norm(const char* op, const Tensor& in, std::initializer_list<const MaybeTensor*> parameters) {
  check(in.ndim() >= 2, op, ": Expected 2 or more dimensions, got ", in.ndim());
  if (!is_floating(in.dtype())) fail_dtype(op, in.dtype());
  for (const MaybeTensor* parameter : parameters) {
    check(!*parameter || (*parameter)->numel() == in.sizes()[1], op, ": parameters should contain ", in.sizes()[1],
          " elements not ", *parameter ? (*parameter)->numel() : 0);
  }
  return infer_pointwise(std::array{Operand(in)}, in.dtype());
}

// The backward computes the batch's statistics again, in a pass over memory that it needs anyway.
std::vector<ops::Value> batch_norm_gradient(const ops::GradArgs& args) {
  const auto& v = args.inputs;
  return norm_gradients(args, {0, 1, 2}, "tensord::native_batch_norm_backward",
                        {args.grad_outputs[0], v[0], v[1], v[3], v[4], ops::Value(), ops::Value(), v[5], v[7]});
}
std::vector<ops::Value> native_batch_norm_gradient(const ops::GradArgs& args) {
  const auto& v = args.inputs;
  return norm_gradients(args, {0, 1, 2}, "tensord::native_batch_norm_backward",
                        {args.grad_outputs[0], v[0], v[1], v[3], v[4], args.outputs[1], args.outputs[2], v[5], v[7]});
}

// After a packed operator, batch norm is a scale and a shift of the channels.
std::optional<ops::Epilogue> batch_norm_epilogue(std::span<const ops::Value> v) {
  if (!v[0].is_none() || !v[3].is_tensor() || !v[5].is_bool() || !v[7].is_float()) return std::nullopt;
  const int64_t channels = v[3].to_tensor().numel();
  for (size_t i = 1; i < 5; ++i) {
    if (v[i].is_none()) continue;
    const Tensor& t = v[i].to_tensor();
    const bool is_kept = t.dtype() == DType::kFloat32 || t.dtype() == DType::kBFloat16 || t.dtype() == DType::kFloat16;
    if (!is_kept || !t.device().is_host() || t.ndim() != 1 || t.numel() != channels) return std::nullopt;
  }
  std::vector<ops::Value> arguments(v.begin(), v.end());
  arguments[0] = Tensor::meta(Dims{1, channels}, DType::kFloat32);
  const PointwiseCall call = batch_norm_call(arguments);
  if (call.count != 3) return std::nullopt;
  const auto flat = [&](size_t k) {
    return call.tensor(k)->as_view(Dims{channels}, Dims{1}, call.tensor(k)->offset());
  };
  return ops::Epilogue{.kind = ops::Epilogue::Kind::kChannelAffine, .scale = flat(1), .shift = flat(2)};
}

// Training writes the running statistics. In evaluation the operator is pure and can be folded.
OP("aten::batch_norm")
    .set<ops::BatchIndependent>([](std::span<const ops::Value> v) { return v[5].is_bool() && !v[5].to_bool(); })
    .set<ops::KeepsRank>()
    .set<ops::EpilogueMaker>(batch_norm_epilogue)
    .infer([](const Tensor& in, MaybeTensor weight, MaybeTensor bias, MaybeTensor mean, MaybeTensor variance, bool,
              double, double, bool) {
      return infer_batch_norm("batch_norm", in, {&weight, &bias, &mean, &variance});
    })
    .gradient(batch_norm_gradient)
    .saves("input, weight, running_mean, running_var")
    .writes_when("training")
    .keeps_layout();

[[maybe_unused]] const bool is_prepared = (add_pointwise_maker("aten::batch_norm", batch_norm_call), true);

std::vector<TensorMeta> infer_native(const Tensor& in, MaybeTensor weight, MaybeTensor bias, MaybeTensor mean,
                                     MaybeTensor variance, bool training, double, double) {
  const TensorMeta out = infer_batch_norm("native_batch_norm", in, {&weight, &bias, &mean, &variance});
  const DType stats = in.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const Dims saved{training ? in.sizes()[1] : 0};
  return {out, {saved, stats, {}, in.device()}, {saved, stats, {}, in.device()}};
}
OP("aten::native_batch_norm")
    .infer(infer_native)
    .gradient(native_batch_norm_gradient)
    .saves("input, weight, running_mean, running_var, result1, result2")
    .writes_when("training")
    .keeps_layout();

// batch_norm in training without writes: it returns the new running statistics. Plans of training steps use it.
std::vector<TensorMeta> infer_training(const Tensor& in, MaybeTensor weight, MaybeTensor bias, MaybeTensor mean,
                                       MaybeTensor variance, double, double) {
  const auto statistics = [&](const MaybeTensor& running) {
    return running ? TensorMeta{running->sizes(), running->dtype(), {}, in.device()}
                   : TensorMeta{Dims{0}, DType::kFloat32, {}, in.device()};
  };
  return {infer_batch_norm("batch_norm_training", in, {&weight, &bias, &mean, &variance}), statistics(mean),
          statistics(variance)};
}
OP("tensord::batch_norm_training").infer(infer_training);

// Normalizes the channels of every sample separately: batch_norm of one sample with N C channels.
Tensor instance_norm(const Tensor& in, MaybeTensor weight, MaybeTensor bias, MaybeTensor mean, MaybeTensor variance,
                     bool use_input_stats, double momentum, double eps, bool) {
  check(in.ndim() >= 2, "instance_norm: Expected 2 or more dimensions, got ", in.ndim());
  check(use_input_stats || (mean && variance),
        "Expected running_mean and running_var to be defined when use_input_stats is false");
  const int64_t batch = in.sizes()[0], channels = in.sizes()[1];
  const auto repeated = [&](const MaybeTensor& t) -> MaybeTensor {
    if (!t) return t;
    return ops::repeat(*t, Dims{batch});
  };
  Dims merged = in.sizes();
  merged[0] = 1;
  merged[1] = batch * channels;
  const Tensor flat = ops::reshape(in, merged);
  const MaybeTensor means = repeated(mean), variances = repeated(variance);
  const Tensor out =
      ops::batch_norm(flat, repeated(weight), repeated(bias), means, variances, use_input_stats, momentum, eps, false);
  const auto average = [&](const MaybeTensor& many, const MaybeTensor& one) {
    if (!one || !use_input_stats || in.is_meta()) return;
    one->copy_from(ops::mean(ops::reshape(*many, Dims{batch, channels}), Dims{0}));
  };
  average(means, mean);
  average(variances, variance);
  return ops::reshape(out, in.sizes());
}
OP("aten::instance_norm").writes_when("use_input_stats").composite().impl(instance_norm);

}  // namespace
}  // namespace tensord::kernels
