// batch_norm and the backward of normalizations on a CUDA device.
#include <array>
#include <optional>
#include <vector>

#include "core/tensor/device_copy.h"
#include "kernels/base/lines.h"
#include "kernels/cuda/launch.h"
#include "kernels/norm/norm_backward.h"

namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::KernelContext;
using Mask = std::vector<bool>;
using MaybeTensor = std::optional<Tensor>;

int8_t code_of(const Tensor& t) { return static_cast<int8_t>(t.dtype()); }

ChannelVector channel_vector(const MaybeTensor& given) {
  if (!given || given->numel() == 0) return {};
  check(given->ndim() <= 1, "expected a vector of channels, but got ", describe(*given));
  return {code_of(*given), given->ndim() == 1 ? given->strides()[0] : 1, given->raw_data()};
}

// The strides of batch, of channel, and of all other dimensions as one; none if those do not form one.
std::optional<std::array<int64_t, 3>> channel_strides(const Tensor& x) {
  std::array<int64_t, 3> out{x.strides()[0], x.strides()[1], 0};
  int64_t next = 0;  // the stride that the next outer dimension must have
  for (size_t d = x.sizes().size(); d-- > 2;) {
    if (x.sizes()[d] == 1) continue;
    if (next == 0)
      out[2] = x.strides()[d];
    else if (x.strides()[d] != next)
      return std::nullopt;
    next = x.strides()[d] * x.sizes()[d];
  }
  return out;
}
// `t`, or a copy of it that has channel strides.
Tensor with_channel_strides(const Tensor& t, int64_t (&strides)[3]) {
  const Tensor dense = channel_strides(t) ? t : t.contiguous();
  const auto found = channel_strides(dense);
  std::copy(found->begin(), found->end(), strides);
  return dense;
}

// A tensor to write that has channel strides; finish() copies it to its destination.
struct ChannelTarget {
  Tensor wanted, dense;
  explicit ChannelTarget(const Tensor& out) : wanted(out), dense(out) {
    if (!channel_strides(out)) dense = Tensor::empty(out.sizes(), out.dtype(), out.device());
  }
  void finish() const {
    if (!dense.is_same(wanted)) wanted.copy_from(dense);
  }
};

// The address of a tensor that lives until the job is queued.
BatchNormJob batch_job(const Tensor& x, double eps) {
  BatchNormJob job;
  job.loop = static_cast<int8_t>(loop_dtype(x.dtype()));
  job.dtype = code_of(x);
  job.batch = x.sizes()[0];
  job.channels = x.sizes()[1];
  job.inner = x.numel() / (job.batch * job.channels);
  job.eps = eps;
  job.x = x.raw_data();
  return job;
}

void run_batch_norm(const KernelContext& context, BatchNormJob& job) {
  const Tensor lines = Tensor::empty(Dims{4, job.channels}, DType::kFloat64, context.device);
  job.lines = lines.raw_data();
  job.lanes = job.x_strides[1] == 1 && job.channels > 1 ? 32 : 1;
  launch(context, &KernelTable::batch_norm, job);
}

struct BatchNormCall {
  const MaybeTensor &weight, &bias, &mean, &variance;
  double momentum = 0, eps = 0;
  const Tensor *saved_mean = nullptr, *saved_rstd = nullptr;
};

// Normalizes by the batch's own statistics and updates the running ones; or by the running ones.
void normalize_channels(const KernelContext& context, const Tensor& in, const BatchNormCall& call, bool training,
                        const Tensor& out) {
  if (out.numel() == 0) return;
  const int64_t count = in.numel() / in.sizes()[1];
  check(!training || count > 1 || (count == 1 && !call.mean && !call.variance),
        "Expected more than 1 value per channel when training, got input size ", in.sizes());
  check(training || (call.mean && call.variance),
        "batch_norm: running_mean and running_var must be defined in evaluation mode");
  BatchNormJob job = batch_job(in, call.eps);
  const Tensor x = with_channel_strides(in, job.x_strides);
  job.x = x.raw_data();
  const ChannelTarget to(out);
  with_channel_strides(to.dense, job.out_strides);
  job.out = to.dense.raw_data();
  job.out_dtype = code_of(out);
  job.statistics = training ? NormStatistics::kOfBatch : NormStatistics::kMeanAndVariance;
  job.updates = training;
  job.momentum = call.momentum;
  job.weight = channel_vector(call.weight), job.bias = channel_vector(call.bias);
  job.mean = channel_vector(call.mean), job.variance = channel_vector(call.variance);
  if (call.saved_mean) job.saved_mean = channel_vector(*call.saved_mean);
  if (call.saved_rstd) job.saved_rstd = channel_vector(*call.saved_rstd);
  for (const MaybeTensor* running : {&call.mean, &call.variance}) {
    if (!training || !*running) continue;
    check((*running)->storage()->ensure_writable(), "batch_norm: running statistics are read-only");
  }
  run_batch_norm(context, job);
  to.finish();
  for (const MaybeTensor* running : {&call.mean, &call.variance}) {
    if (training && *running) (*running)->storage()->bump_version();
  }
}

IMPL("aten::batch_norm", kCUDA,
     [](const KernelContext& context, const Tensor& in, MaybeTensor weight, MaybeTensor bias, MaybeTensor mean,
        MaybeTensor variance, bool training, double momentum, double eps, bool, Tensor& out) {
       normalize_channels(context, in, {weight, bias, mean, variance, momentum, eps}, training, out);
     });
IMPL("aten::native_batch_norm", kCUDA,
     [](const KernelContext& context, const Tensor& in, MaybeTensor weight, MaybeTensor bias, MaybeTensor mean,
        MaybeTensor variance, bool training, double momentum, double eps, Tensor& out, Tensor& saved_mean,
        Tensor& saved_rstd) {
       BatchNormCall call{weight, bias, mean, variance, momentum, eps};
       if (training) call.saved_mean = &saved_mean, call.saved_rstd = &saved_rstd;
       normalize_channels(context, in, call, training, out);
     });
IMPL("tensord::batch_norm_training", kCUDA,
     [](const KernelContext& context, const Tensor& in, MaybeTensor weight, MaybeTensor bias, MaybeTensor mean,
        MaybeTensor variance, double momentum, double eps, Tensor& out, Tensor& new_mean, Tensor& new_variance) {
       if (mean) new_mean.copy_from(*mean);
       if (variance) new_variance.copy_from(*variance);
       const MaybeTensor own_mean = mean ? MaybeTensor(new_mean) : std::nullopt,
                         own_variance = variance ? MaybeTensor(new_variance) : std::nullopt;
       normalize_channels(context, in, {weight, bias, own_mean, own_variance, momentum, eps}, true, out);
     });

void batch_norm_backward_cuda(const KernelContext& context, const Tensor& g, const Tensor& x, MaybeTensor weight,
                              MaybeTensor running_mean, MaybeTensor running_var, MaybeTensor save_mean,
                              MaybeTensor save_invstd, bool training, double eps, Mask mask, Tensor& dx,
                              Tensor& dweight, Tensor& dbias) {
  if (x.numel() == 0) {
    if (mask[1]) zero_elements(dweight);
    if (mask[2]) zero_elements(dbias);
    return;
  }
  BatchNormJob job = batch_job(x, eps);
  const Tensor from = with_channel_strides(x, job.x_strides), incoming = with_channel_strides(g, job.g_strides);
  job.is_backward = true;
  job.x = from.raw_data();
  job.g = incoming.raw_data();
  job.g_dtype = code_of(g);
  job.weight = channel_vector(weight);
  if (training && save_mean && save_invstd) {
    job.statistics = NormStatistics::kMeanAndRstd;
    job.mean = channel_vector(save_mean), job.variance = channel_vector(save_invstd);
  } else if (!training) {
    job.statistics = NormStatistics::kMeanAndVariance;
    job.mean = channel_vector(running_mean), job.variance = channel_vector(running_var);
  }
  if (mask[1]) job.dweight = channel_vector(dweight);
  if (mask[2]) job.dbias = channel_vector(dbias);
  const ChannelTarget to(mask[0] ? dx : from);
  if (mask[0]) {
    with_channel_strides(to.dense, job.out_strides);
    job.out = to.dense.raw_data();
    job.out_dtype = code_of(dx);
  }
  run_batch_norm(context, job);
  if (mask[0]) to.finish();
}
IMPL("tensord::native_batch_norm_backward", kCUDA, batch_norm_backward_cuda);

// --- layer_norm and group_norm

struct RowsBackward {
  const MaybeTensor& weight;
  int64_t length = 0, groups = 1, inner = 1;
  double eps = 0;
  const Tensor *mean = nullptr, *rstd = nullptr;
};

void rows_backward(const KernelContext& context, const Tensor& g, const Tensor& x, const RowsBackward& call,
                   const Mask& mask, const Tensor& dx, const Tensor& dweight, const Tensor& dbias) {
  if (x.numel() == 0) {
    if (mask[1]) zero_elements(dweight);
    if (mask[2]) zero_elements(dbias);
    return;
  }
  const Tensor from = x.contiguous(), incoming = g.contiguous();
  const Tensor weight = call.weight ? call.weight->contiguous() : Tensor();
  const Tensor mean = call.mean ? call.mean->contiguous() : Tensor(),
               rstd = call.rstd ? call.rstd->contiguous() : Tensor();
  NormBackwardJob job;
  job.loop = static_cast<int8_t>(loop_dtype(x.dtype()));
  job.dtype = code_of(x), job.g_dtype = code_of(g);
  job.length = call.length, job.groups = call.groups, job.inner = call.inner;
  job.rows = x.numel() / call.length;
  job.eps = call.eps;
  job.x = from.raw_data(), job.g = incoming.raw_data();
  if (weight) job.weight = weight.raw_data(), job.weight_dtype = code_of(weight);
  if (mean) job.mean = mean.raw_data(), job.rstd = rstd.raw_data(), job.stats_dtype = code_of(mean);
  check(!mean || mean.dtype() == rstd.dtype(), "mean and rstd must have the same dtype");
  const Tensor moments = Tensor::empty(Dims{job.rows, 2}, DType::kFloat64, context.device);
  job.moments = moments.raw_data();
  const Tensor dense = mask[0] && !dx.is_contiguous() ? Tensor::empty(dx.sizes(), dx.dtype(), dx.device()) : dx;
  if (mask[0]) job.dx = dense.raw_data();
  const auto flat = [](const Tensor& t) { return ChannelVector{code_of(t), 1, t.raw_data()}; };
  check((!mask[1] || dweight.is_contiguous()) && (!mask[2] || dbias.is_contiguous()),
        "gradients of parameters must be dense");
  if (mask[1]) job.dweight = flat(dweight);
  if (mask[2]) job.dbias = flat(dbias);
  launch(context, &KernelTable::norm_backward, job);
  if (!dense.is_same(dx)) dx.copy_from(dense);
}

IMPL("tensord::layer_norm_backward", kCUDA,
     [](const KernelContext& context, const Tensor& g, const Tensor& x, const IntList& shape, MaybeTensor weight,
        double eps, const Mask& mask, Tensor& dx, Tensor& dweight, Tensor& dbias) {
       const RowsBackward call{.weight = weight, .length = normalized_length(x, shape), .eps = eps};
       rows_backward(context, g, x, call, mask, dx, dweight, dbias);
     });
IMPL("tensord::native_layer_norm_backward", kCUDA,
     [](const KernelContext& context, const Tensor& g, const Tensor& x, const IntList& shape, const Tensor& mean,
        const Tensor& rstd, MaybeTensor weight, MaybeTensor, const Mask& mask, Tensor& dx, Tensor& dweight,
        Tensor& dbias) {
       const RowsBackward call{.weight = weight, .length = normalized_length(x, shape), .mean = &mean, .rstd = &rstd};
       rows_backward(context, g, x, call, mask, dx, dweight, dbias);
     });

RowsBackward group_backward_call(const Tensor& x, int64_t groups, const MaybeTensor& weight) {
  const int64_t channels = x.sizes()[1], samples = std::max<int64_t>(1, x.sizes()[0] * channels);
  const int64_t inner = x.numel() / samples;
  return {.weight = weight, .length = channels / groups * inner, .groups = groups, .inner = inner};
}
IMPL("tensord::group_norm_backward", kCUDA,
     [](const KernelContext& context, const Tensor& g, const Tensor& x, int64_t groups, MaybeTensor weight, double eps,
        const Mask& mask, Tensor& dx, Tensor& dweight, Tensor& dbias) {
       RowsBackward call = group_backward_call(x, groups, weight);
       call.eps = eps;
       rows_backward(context, g, x, call, mask, dx, dweight, dbias);
     });
IMPL("tensord::native_group_norm_backward", kCUDA,
     [](const KernelContext& context, const Tensor& g, const Tensor& x, const Tensor& mean, const Tensor& rstd,
        MaybeTensor weight, int64_t, int64_t, int64_t, int64_t groups, const Mask& mask, Tensor& dx, Tensor& dweight,
        Tensor& dbias) {
       RowsBackward call = group_backward_call(x, groups, weight);
       call.mean = &mean;
       call.rstd = &rstd;
       rows_backward(context, g, x, call, mask, dx, dweight, dbias);
     });

}  // namespace
}  // namespace tensord::kernels
