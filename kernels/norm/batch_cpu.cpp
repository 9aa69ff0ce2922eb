// The loops of batch_norm: statistics of channels, scales and shifts.
#include "kernels/norm/batch.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "kernels/norm/channels.h"
#include "kernels/norm/norm.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;
using MaybeTensor = std::optional<Tensor>;

std::vector<double> values_or(const MaybeTensor& tensor, int64_t count, double otherwise) {
  if (!tensor) return std::vector<double>(static_cast<size_t>(count), otherwise);
  const Tensor wide = tensor->to(DType::kFloat64).contiguous();
  return {wide.data<double>(), wide.data<double>() + wide.numel()};
}

// A tensor of `values` in the compute type that broadcasts along dimension 1 of `like`.
Tensor channel_tensor(const std::vector<double>& values, const Tensor& like) {
  const DType dtype = like.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  Dims sizes(static_cast<size_t>(like.ndim()), 1);
  sizes[1] = static_cast<int64_t>(values.size());
  const Tensor out = Tensor::empty(sizes, dtype);
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::kFloat64)
      out.data<double>()[i] = values[i];
    else
      out.data<float>()[i] = static_cast<float>(values[i]);
  }
  return out;
}

struct Statistics {
  std::vector<double> mean, variance;
};

// Dense float32 in both common memory orders, without the elementwise machinery.
bool apply_dense(const Tensor& in, const Tensor& scales, const Tensor& shifts, const Tensor& out) {
  if (in.dtype() != DType::kFloat32 || out.dtype() != DType::kFloat32) return false;
  const int64_t channels = in.sizes()[1], inner = in.numel() / std::max<int64_t>(1, in.sizes()[0] * channels);
  const float *x = in.data<float>(), *s = scales.data<float>(), *t = shifts.data<float>();
  float* y = out.data<float>();
  if (inner > 1 && in.is_contiguous() && out.is_contiguous()) {
    parallel_for(in.sizes()[0] * channels, std::max<int64_t>(1, 16384 / inner), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        affine_row(x + i * inner, s[i % channels], t[i % channels], y + i * inner, inner);
    });
    return true;
  }
  const bool channels_last =
      inner == 1 ? in.is_contiguous() && out.is_contiguous() : in.is_channels_last() && out.is_channels_last();
  if (!channels_last) return false;
  parallel_for(in.numel() / channels, std::max<int64_t>(1, 16384 / channels), [&](int64_t begin, int64_t end) {
    affine_rows(x + begin * channels, s, t, y + begin * channels, end - begin, channels);
  });
  return true;
}

// The scale and shift of each channel, as tensors that broadcast to `in`.
std::pair<Tensor, Tensor> affine_of(const Tensor& in, const Statistics& statistics, const MaybeTensor& weight,
                                    const MaybeTensor& bias, double eps) {
  const int64_t channels = in.sizes()[1];
  std::vector<double> scale = values_or(weight, channels, 1), shift = values_or(bias, channels, 0);
  for (size_t c = 0; c < scale.size(); ++c) {
    scale[c] /= std::sqrt(statistics.variance[c] + eps);
    shift[c] -= statistics.mean[c] * scale[c];
  }
  return {channel_tensor(scale, in), channel_tensor(shift, in)};
}

void apply(const KernelContext& context, const Tensor& in, const Statistics& statistics, const MaybeTensor& weight,
           const MaybeTensor& bias, double eps, Tensor& out) {
  const auto [scales, shifts] = affine_of(in, statistics, weight, bias, eps);
  if (apply_dense(in, scales, shifts, out)) return;
  const std::array operands{Operand(in), Operand(scales), Operand(shifts)};
  run_pointwise(context, PointwiseCall(Formula::affine, in.dtype(), operands), out);
}

// running = (1 - momentum) running + momentum new
void update_running(const MaybeTensor& running, const std::vector<double>& fresh, double momentum, double factor) {
  if (!running) return;
  check(running->storage()->ensure_writable(), "batch_norm: running statistics are read-only");
  std::vector<double> values = values_or(running, running->numel(), 0);
  for (size_t i = 0; i < values.size(); ++i) values[i] = (1 - momentum) * values[i] + momentum * factor * fresh[i];
  const Tensor wide = Tensor::empty(running->sizes(), DType::kFloat64);
  std::copy(values.begin(), values.end(), wide.data<double>());
  running->copy_from(wide);
  running->storage()->bump_version();
}

// The mean and biased variance of each channel.
Statistics batch_statistics(std::span<const ChannelSums> sums) {
  Statistics statistics;
  for (const ChannelSums& of : sums) {
    statistics.mean.push_back(of.mean);
    statistics.variance.push_back(of.squares / of.count);
  }
  return statistics;
}

// Planes of float32: normalizes each channel while it is still in the cache after it was summed.
Statistics normalize_planes(const Tensor& in, const MaybeTensor& weight, const MaybeTensor& bias, double eps,
                            const Tensor& out) {
  const ChannelLayout layout(in);
  const std::vector<double> scales = values_or(weight, layout.channels, 1),
                            shifts = values_or(bias, layout.channels, 0);
  std::vector<ChannelSums> sums(scales.size());
  const float* x = in.data<float>();
  float* y = out.data<float>();
  parallel_for_cost(layout.channels, 0.3 * static_cast<double>(layout.rows()), [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const auto i = static_cast<size_t>(c);
      sums[i] = sum_channel(x + c * layout.inner, nullptr, layout.batch, layout.step(), layout.inner, nullptr);
      const double scale = scales[i] / std::sqrt(sums[i].squares / sums[i].count + eps);
      for (int64_t n = 0; n < layout.batch; ++n) {
        const int64_t offset = n * layout.step() + c * layout.inner;
        affine_row(x + offset, scale, shifts[i] - sums[i].mean * scale, y + offset, layout.inner);
      }
    }
  });
  return batch_statistics(sums);
}

// Normalizes by the batch's own statistics, returns them, and updates the running ones.
Statistics normalize_batch(const KernelContext& context, const Tensor& in, const MaybeTensor& weight,
                           const MaybeTensor& bias, const MaybeTensor& mean, const MaybeTensor& variance,
                           double momentum, double eps, Tensor& out) {
  const int64_t channels = in.sizes()[1], count = in.numel() / std::max<int64_t>(channels, 1);
  // A single value has no unbiased variance, which only the running variance is.
  check(count > 1 || (count == 1 && !mean && !variance),
        "Expected more than 1 value per channel when training, got input size ", in.sizes());
  Statistics statistics;
  if (in.dtype() == DType::kFloat32 && in.is_contiguous() && out.is_contiguous() && !ChannelLayout(in).by_rows) {
    statistics = normalize_planes(in, weight, bias, eps, out);
  } else {
    statistics = batch_statistics(channel_sums(dense_channels(in), Tensor(), {}));
    apply(context, in, statistics, weight, bias, eps, out);
  }
  update_running(mean, statistics.mean, momentum, 1.0);
  update_running(variance, statistics.variance, momentum, static_cast<double>(count) / static_cast<double>(count - 1));
  return statistics;
}

void batch_norm(const KernelContext& context, const Tensor& in, MaybeTensor weight, MaybeTensor bias, MaybeTensor mean,
                MaybeTensor variance, bool training, double momentum, double eps, bool, Tensor& out) {
  if (out.numel() == 0) return;
  if (training) {
    normalize_batch(context, in, weight, bias, mean, variance, momentum, eps, out);
    return;
  }
  check(mean && variance, "batch_norm: running_mean and running_var must be defined in evaluation mode");
  const int64_t channels = in.sizes()[1];
  apply(context, in, {values_or(mean, channels, 0), values_or(variance, channels, 1)}, weight, bias, eps, out);
}

}  // namespace

PointwiseCall batch_norm_call(std::span<const ops::Value> v) {
  const Tensor& in = v[0].to_tensor();
  for (size_t i = 1; i < 5; ++i) {
    if (v[i].is_tensor() ? v[i].to_tensor().is_meta() : i > 2) return {};
  }
  if (v[5].to_bool()) return {};
  const auto given = [&](size_t i) { return ops::Unbox<MaybeTensor>::get(v[i]); };
  const int64_t channels = in.sizes()[1];
  const Statistics statistics{values_or(given(3), channels, 0), values_or(given(4), channels, 1)};
  const auto [scales, shifts] = affine_of(in, statistics, given(1), given(2), ops::Unbox<double>::get(v[7]));
  PointwiseCall call(Formula::affine, in.dtype(), std::array{Operand(in), Operand(scales), Operand(shifts)});
  call.own_operands();
  return call;
}

namespace {

IMPL("aten::batch_norm", kCPU, batch_norm);
IMPL("aten::native_batch_norm", kCPU,
     [](const KernelContext& context, const Tensor& in, MaybeTensor weight, MaybeTensor bias, MaybeTensor mean,
        MaybeTensor variance, bool training, double momentum, double eps, Tensor& out, Tensor& saved_mean,
        Tensor& saved_rstd) {
       if (!training) return batch_norm(context, in, weight, bias, mean, variance, false, momentum, eps, false, out);
       if (out.numel() == 0) return;
       Statistics statistics = normalize_batch(context, in, weight, bias, mean, variance, momentum, eps, out);
       saved_mean.copy_from(channel_tensor(statistics.mean, Tensor::meta(Dims{1, 1}, saved_mean.dtype()))
                                .as_view(saved_mean.sizes(), {1}, 0));
       for (double& v : statistics.variance) v = 1.0 / std::sqrt(v + eps);
       saved_rstd.copy_from(channel_tensor(statistics.variance, Tensor::meta(Dims{1, 1}, saved_rstd.dtype()))
                                .as_view(saved_rstd.sizes(), {1}, 0));
     });
IMPL("tensord::batch_norm_training", kCPU,
     [](const KernelContext& context, const Tensor& in, MaybeTensor weight, MaybeTensor bias, MaybeTensor mean,
        MaybeTensor variance, double momentum, double eps, Tensor& out, Tensor& new_mean, Tensor& new_variance) {
       if (mean) new_mean.copy_from(*mean);
       if (variance) new_variance.copy_from(*variance);
       if (out.numel() == 0) return;
       normalize_batch(context, in, weight, bias, mean ? MaybeTensor(new_mean) : std::nullopt,
                       variance ? MaybeTensor(new_variance) : std::nullopt, momentum, eps, out);
     });

}  // namespace
}  // namespace tensord::kernels
