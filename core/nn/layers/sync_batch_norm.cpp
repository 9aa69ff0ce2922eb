#include "core/nn/layers/sync_batch_norm.h"

#include <cmath>
#include <vector>

#include "core/autograd/function.h"
#include "core/nn/init.h"
#include "core/ops/registry.h"
#include "core/ops/run.h"
#include "core/tensor/grad_mode.h"
#include "ops/norm.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace tensord::nn {
namespace {

using autograd::FunctionContext;
using distributed::ProcessGroup;
using ops::Value;
using MaybeTensor = std::optional<Tensor>;

// Statistics of each channel, float64 [C], and the number of elements of one channel, over all ranks.
struct Statistics {
  Tensor mean, variance;
  double count = 0;
};

Dims dims_but_channels(const Tensor& input) {
  Dims dims{0};
  for (int64_t d = 2; d < input.ndim(); ++d) dims.push_back(d);
  return dims;
}

Tensor zeros(int64_t count) {
  const Tensor out = Tensor::empty(Dims{count}, DType::kFloat64);
  std::fill_n(out.data<double>(), count, 0.0);
  return out;
}

// float16 and bfloat16 are summed in float32.
Tensor widened(const Tensor& tensor) {
  const bool is_narrow = tensor.dtype() == DType::kFloat16 || tensor.dtype() == DType::kBFloat16;
  return is_narrow ? tensor.to(DType::kFloat32) : tensor;
}

// [1, C, 1, ...] with the rank of `like`.
Tensor per_channel(const Tensor& values, const Tensor& like) {
  Dims sizes(static_cast<size_t>(like.ndim()), 1);
  sizes[1] = values.numel();
  return ops::reshape(values.to(like.dtype()), sizes);
}

// [count, mean of each channel, sum of squared differences from it].
Tensor own_sums(const Tensor& input) {
  const int64_t channels = input.size(1);
  const Tensor out = zeros(1 + 2 * channels);
  if (input.numel() == 0) return out;
  const int64_t rows = input.numel() / channels;
  const auto count = static_cast<double>(rows);
  const Value arguments[] = {widened(input), ops::make_int_list(dims_but_channels(input)), int64_t{0}, false};
  const std::vector<Value> found = ops::run(ops::get_op("aten::var_mean.correction"), arguments);
  const Tensor variance = found[0].to_tensor().to(DType::kFloat64).contiguous();
  const Tensor mean = found[1].to_tensor().to(DType::kFloat64).contiguous();
  double* const to = out.data<double>();
  to[0] = count;
  for (int64_t c = 0; c < channels; ++c) {
    to[1 + c] = mean.data<double>()[c];
    to[1 + channels + c] = variance.data<double>()[c] * count;
  }
  return out;
}

// Combined in rank order, so that all ranks get the same bits.
Statistics statistics_of_all(ProcessGroup& group, const Tensor& input) {
  const Tensor own = own_sums(input);
  const Tensor all = Tensor::empty(Dims{group.size(), own.numel()}, DType::kFloat64);
  group.all_gather_into_tensor(all, own)->wait();
  const int64_t channels = input.size(1);
  Statistics out{zeros(channels), zeros(channels), 0};
  double *const mean = out.mean.data<double>(), *const squares = out.variance.data<double>();
  for (int rank = 0; rank < group.size(); ++rank) {
    const double* const of = all.data<double>() + rank * own.numel();
    const double count = of[0], sum = out.count + count;
    if (count == 0) continue;
    for (int64_t c = 0; c < channels; ++c) {
      const double delta = of[1 + c] - mean[c];
      mean[c] += delta * count / sum;
      squares[c] += of[1 + channels + c] + delta * delta * out.count * count / sum;
    }
    out.count = sum;
  }
  if (out.count > 0) {
    for (int64_t c = 0; c < channels; ++c) squares[c] /= out.count;
  }
  return out;
}

// running = (1 - momentum) running + momentum factor fresh
void update_running(const MaybeTensor& running, const Tensor& fresh, double momentum, double factor) {
  if (!running) return;
  check(running->storage()->ensure_writable(), "batch_norm: running statistics are read-only");
  const Tensor values = running->to(DType::kFloat64).contiguous().clone();
  double* const to = values.data<double>();
  for (int64_t c = 0; c < values.numel(); ++c) {
    to[c] = (1 - momentum) * to[c] + momentum * factor * fresh.data<double>()[c];
  }
  running->copy_from(values);
  running->storage()->bump_version();
}

Tensor normalized(const Tensor& x, const MaybeTensor& weight, const MaybeTensor& bias, const Tensor& mean,
                  const Tensor& variance, double eps) {
  return ops::batch_norm(x, weight, bias, mean, variance, false, 0.0, eps, false);
}

// The group as a script value, with its keeper.
struct GroupObject final : ops::OpaqueObject {
  GroupObject(ProcessGroup& group, std::shared_ptr<void> keeper) : group(group), keeper(std::move(keeper)) {}
  std::string class_name() const override { return "ProcessGroup"; }
  ProcessGroup& group;
  const std::shared_ptr<void> keeper;
};
using GroupPtr = IntrusivePtr<ops::OpaqueObject>;

struct SyncBatchNormFunction : autograd::Function<SyncBatchNormFunction> {
  static constexpr bool kOnceDifferentiable = true;

  static Tensor forward(FunctionContext& context, const Tensor& input, const MaybeTensor& weight,
                        const MaybeTensor& bias, const GroupPtr& group, const Statistics& statistics, double eps) {
    std::vector<Tensor> saved{input, statistics.mean, statistics.variance};
    if (weight) saved.push_back(*weight);
    context.save_for_backward(std::move(saved));
    context.data["count"] = statistics.count;
    context.data["eps"] = eps;
    context.data["group"] = Value(group);
    return normalized(input, weight, bias, statistics.mean, statistics.variance, eps);
  }

  static std::vector<Tensor> backward(FunctionContext& context, std::vector<Tensor> grads) {
    const NoGradGuard without_grad;
    const std::vector<Tensor> saved = context.saved();
    const Tensor x = widened(saved[0]), g = widened(grads[0]);
    const Tensor &mean = saved[1], &variance = saved[2];
    const double eps = context.data["eps"].to_float(), count = context.data["count"].to_float();
    // With known statistics these are the sums of g (x - mean) / std and of g.
    const Value arguments[] = {g,       x,       Value(), mean, variance,
                               Value(), Value(), false,   eps,  ops::make_list(ops::bool_type(), {false, true, true})};
    const std::vector<Value> own = ops::run(ops::get_op("aten::native_batch_norm_backward"), arguments);
    const Tensor sum_gx = own[1].to_tensor(), sum_g = own[2].to_tensor();
    std::vector<Tensor> out(6);
    if (context.needs_input_grad(0)) {
      ProcessGroup& group = static_cast<GroupObject&>(*context.data["group"].to_opaque()).group;
      const int64_t channels = mean.numel();
      const Tensor sums = Tensor::empty(Dims{2, channels}, DType::kFloat64);
      sums.as_view({channels}, {1}, 0).copy_from(sum_gx);
      sums.as_view({channels}, {1}, channels).copy_from(sum_g);
      group.all_reduce(sums)->wait();
      // dx = weight / std * (g - sum_g / count - (x - mean) / std * sum_gx / count)
      const Tensor scale = zeros(channels), slope = zeros(channels), shift = zeros(channels);
      const Tensor weight = saved.size() > 3 ? saved[3].to(DType::kFloat64).contiguous() : Tensor();
      for (int64_t c = 0; c < channels; ++c) {
        const double of =
            (weight.defined() ? weight.data<double>()[c] : 1) / std::sqrt(variance.data<double>()[c] + eps);
        scale.data<double>()[c] = of;
        slope.data<double>()[c] = -of * sums.data<double>()[c] / count;
        shift.data<double>()[c] = -of * sums.data<double>()[channels + c] / count;
      }
      const Tensor rest = normalized(x, slope, shift, mean, variance, eps);
      out[0] = ops::addcmul(rest, g, per_channel(scale, x)).to(saved[0].dtype());
    }
    if (context.needs_input_grad(1)) out[1] = sum_gx.to(saved[3].dtype());
    if (context.needs_input_grad(2)) out[2] = sum_g;
    return out;
  }
};

void check_input(const Tensor& input, std::initializer_list<const MaybeTensor*> parameters) {
  check(input.ndim() >= 2, "batch_norm: Expected 2 or more dimensions, got ", input.ndim());
  if (!is_floating(input.dtype())) {
    fail(ErrorCode::kUnimplemented, "sync_batch_norm: not for ", name_of(input.dtype()));
  }
  if (!input.device().is_host()) fail(ErrorCode::kUnimplemented, "sync_batch_norm: tensors on the CPU only");
  for (const MaybeTensor* parameter : parameters) {
    check(!*parameter || (*parameter)->numel() == input.size(1), "batch_norm: parameters should contain ",
          input.size(1), " elements not ", *parameter ? (*parameter)->numel() : 0);
  }
}

MaybeTensor given(const Tensor& tensor) { return tensor.defined() ? MaybeTensor(tensor) : std::nullopt; }

struct Synchronized {
  Tensor output;
  Statistics statistics;
};

Synchronized normalize_over(ProcessGroup& group, const Tensor& input, const MaybeTensor& weight,
                            const MaybeTensor& bias, const MaybeTensor& running_mean, const MaybeTensor& running_var,
                            double momentum, double eps, std::shared_ptr<void> keeper) {
  check_input(input, {&weight, &bias, &running_mean, &running_var});
  Synchronized out;
  {
    const NoGradGuard without_grad;
    out.statistics = statistics_of_all(group, input);
    const double count = out.statistics.count;
    check(count > 1, "Expected more than 1 value per channel when training, got input size ", input.sizes());
    update_running(running_mean, out.statistics.mean, momentum, 1);
    update_running(running_var, out.statistics.variance, momentum, count / (count - 1));
  }
  const GroupPtr held = make_intrusive<GroupObject>(group, std::move(keeper));
  out.output = SyncBatchNormFunction::apply(input, weight, bias, held, out.statistics, eps);
  return out;
}

// The results of native_batch_norm: the output, and each channel's mean and 1 / std.
ops::Returns native_results(const Synchronized& done, double eps) {
  const DType dtype = done.output.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const Tensor rstd = zeros(done.statistics.mean.numel());
  for (int64_t c = 0; c < rstd.numel(); ++c) {
    rstd.data<double>()[c] = 1 / std::sqrt(done.statistics.variance.data<double>()[c] + eps);
  }
  return {{done.output, done.statistics.mean.to(dtype), rstd.to(dtype)}};
}

}  // namespace

Tensor sync_batch_norm(ProcessGroup& group, const Tensor& input, const MaybeTensor& weight, const MaybeTensor& bias,
                       const MaybeTensor& running_mean, const MaybeTensor& running_var, double momentum, double eps,
                       std::shared_ptr<void> keeper) {
  return normalize_over(group, input, weight, bias, running_mean, running_var, momentum, eps, std::move(keeper)).output;
}

SyncBatchNorm::SyncBatchNorm(int64_t features, ProcessGroup& group, BatchNormOptions options)
    : Layer("SyncBatchNorm"),
      weight(
          register_parameter("weight", options.is_affine ? Tensor::empty(Dims{features}, DType::kFloat32) : Tensor())),
      bias(register_parameter("bias", options.is_affine ? Tensor::empty(Dims{features}, DType::kFloat32) : Tensor())),
      running_mean(register_buffer(
          "running_mean", options.tracks_statistics ? Tensor::empty(Dims{features}, DType::kFloat32) : Tensor())),
      running_var(register_buffer(
          "running_var", options.tracks_statistics ? Tensor::empty(Dims{features}, DType::kFloat32) : Tensor())),
      num_batches_tracked(
          register_buffer("num_batches_tracked", options.tracks_statistics ? Tensor::scalar<int64_t>(0) : Tensor())),
      group_(group),
      options_(options) {
  for (const Tensor& ones : {weight, running_var}) {
    if (ones.defined()) init::ones_(ones);
  }
  for (const Tensor& none : {bias, running_mean}) {
    if (none.defined()) init::zeros_(none);
  }
}

Tensor SyncBatchNorm::forward(const Tensor& input) {
  check(input.ndim() >= 2, "expected at least 2D input (got ", input.ndim(), "D input)");
  if (is_training() && num_batches_tracked.defined()) {
    const NoGradGuard without_grad;
    ops::add_(num_batches_tracked, 1);
  }
  const bool by_batch = is_training() || !running_mean.defined();
  if (by_batch && is_training() && group_.size() > 1) {
    return sync_batch_norm(group_, input, given(weight), given(bias), given(running_mean), given(running_var),
                           options_.momentum, options_.eps);
  }
  return ops::batch_norm(input, weight, bias, running_mean, running_var, by_batch, options_.momentum, options_.eps,
                         false);
}

std::shared_ptr<const ops::Op> batch_norm_over_ranks(std::string_view name, std::function<ProcessGroup*()> group) {
  const ops::Op& own = ops::get_op(name);
  const bool is_native = own.schema.returns.size() > 1;
  return ops::with_function(
      own, [&own, is_native, group = std::move(group)](std::span<const Value> v, std::vector<Value>& returns) {
        ProcessGroup* const over = v[5].to_bool() ? group() : nullptr;
        if (over == nullptr || over->size() == 1) return ops::run(own, v, returns);
        const auto tensor = [&](size_t i) { return ops::Unbox<MaybeTensor>::get(v[i]); };
        const double eps = ops::Unbox<double>::get(v[7]);
        const Synchronized done = normalize_over(*over, v[0].to_tensor(), tensor(1), tensor(2), tensor(3), tensor(4),
                                                 ops::Unbox<double>::get(v[6]), eps, nullptr);
        if (!is_native) return returns.push_back(done.output);
        for (Value& value : native_results(done, eps).values) returns.push_back(std::move(value));
      });
}

}  // namespace tensord::nn
