// Softmax, layer norm and group norm on a CUDA device.
#include <optional>

#include "kernels/base/lines.h"
#include "kernels/cuda/launch.h"

namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::KernelContext;
using MaybeTensor = std::optional<Tensor>;

// A forward pass has no result to read; `y` stands in its place.
SoftmaxJob softmax_job(const Tensor& in, const Tensor& y, int64_t dim, bool is_log, const Tensor& out) {
  dim = wrap_dim(dim, in.ndim());
  const LoopNest<3> nest(without(in.sizes(), dim),
                         {without(out.strides(), dim), without(in.strides(), dim), without(y.strides(), dim)});
  if (nest.ndim() > static_cast<size_t>(kRowDims))
    fail(ErrorCode::kUnimplemented, "softmax on CUDA takes at most ", kRowDims, " dimensions that cannot be merged");
  SoftmaxJob job;
  job.is_log = is_log;
  job.loop = static_cast<int8_t>(loop_dtype(out.dtype()));
  job.in_dtype = static_cast<int8_t>(in.dtype());
  job.y_dtype = static_cast<int8_t>(y.dtype());
  job.out_dtype = static_cast<int8_t>(out.dtype());
  job.dims = static_cast<int>(nest.ndim());
  job.length = line_length(in, dim);
  job.lines = job.length == 0 ? 0 : in.numel() / job.length;
  job.in_step = line_stride(in, dim);
  job.y_step = line_stride(y, dim);
  job.out_step = line_stride(out, dim);
  for (size_t d = 0; d < nest.ndim(); ++d) {
    job.sizes[d] = nest.size(d);
    job.out_strides[d] = nest.stride(0, d);
    job.in_strides[d] = nest.stride(1, d);
    job.y_strides[d] = nest.stride(2, d);
  }
  job.in = in.raw_data();
  job.y = y.raw_data();
  job.out = out.raw_data();
  return job;
}

template <bool kIsLog>
void softmax_cuda(const KernelContext& context, const Tensor& in, int64_t dim, std::optional<DType>, Tensor& out) {
  if (out.numel() != 0) launch(context, &KernelTable::softmax, softmax_job(in, in, dim, kIsLog, out));
}
template <bool kIsLog>
void softmax_flag_cuda(const KernelContext& context, const Tensor& in, int64_t dim, bool, Tensor& out) {
  softmax_cuda<kIsLog>(context, in, dim, std::nullopt, out);
}
template <bool kIsLog>
void softmax_backward_cuda(const KernelContext& context, const Tensor& g, const Tensor& y, int64_t dim, DType,
                           Tensor& out) {
  if (out.numel() == 0) return;
  SoftmaxJob job = softmax_job(g, y, dim, kIsLog, out);
  job.is_backward = true;
  job.loop = static_cast<int8_t>(loop_dtype(y.dtype()));
  launch(context, &KernelTable::softmax, job);
}

IMPL("aten::softmax.int", kCUDA, softmax_cuda<false>);
IMPL("aten::log_softmax.int", kCUDA, softmax_cuda<true>);
IMPL("aten::_softmax", kCUDA, softmax_flag_cuda<false>);
IMPL("aten::_log_softmax", kCUDA, softmax_flag_cuda<true>);
IMPL("aten::_softmax_backward_data", kCUDA, softmax_backward_cuda<false>);
IMPL("aten::_log_softmax_backward_data", kCUDA, softmax_backward_cuda<true>);

struct NormCall {
  const MaybeTensor &weight, &bias;
  double eps = 0;
  int64_t length = 0, groups = 1, inner = 1;
  Tensor *mean = nullptr, *rstd = nullptr;
};

void norm_cuda(const KernelContext& context, const Tensor& in, const NormCall& call, const Tensor& out) {
  if (out.numel() == 0) return;
  const Tensor from = in.contiguous();
  const Tensor weight = call.weight ? call.weight->contiguous() : Tensor();
  const Tensor bias = call.bias ? call.bias->contiguous() : Tensor();
  NormJob job;
  job.loop = static_cast<int8_t>(loop_dtype(in.dtype()));
  job.dtype = static_cast<int8_t>(in.dtype());
  job.length = call.length;
  job.rows = in.numel() / call.length;
  job.groups = call.groups;
  job.inner = call.inner;
  job.eps = call.eps;
  job.in = from.raw_data();
  job.out = out.raw_data();
  if (weight) job.weight = weight.raw_data(), job.weight_dtype = static_cast<int8_t>(weight.dtype());
  if (bias) job.bias = bias.raw_data(), job.bias_dtype = static_cast<int8_t>(bias.dtype());
  if (call.mean) {
    job.mean = call.mean->raw_data();
    job.rstd = call.rstd->raw_data();
    job.stats_dtype = static_cast<int8_t>(call.mean->dtype());
  }
  launch(context, &KernelTable::norm_rows, job);
}

IMPL("aten::layer_norm", kCUDA,
     [](const KernelContext& context, const Tensor& in, IntList shape, MaybeTensor weight, MaybeTensor bias, double eps,
        bool, Tensor& out) {
       norm_cuda(context, in, {.weight = weight, .bias = bias, .eps = eps, .length = checked_numel(shape)}, out);
     });
IMPL("aten::native_layer_norm", kCUDA,
     [](const KernelContext& context, const Tensor& in, IntList shape, MaybeTensor weight, MaybeTensor bias, double eps,
        Tensor& out, Tensor& mean, Tensor& rstd) {
       NormCall call{.weight = weight, .bias = bias, .eps = eps, .length = checked_numel(shape)};
       call.mean = &mean;
       call.rstd = &rstd;
       norm_cuda(context, in, call, out);
     });

NormCall group_call(const Tensor& in, int64_t groups, const MaybeTensor& weight, const MaybeTensor& bias, double eps) {
  const int64_t channels = in.sizes()[1], inner = in.numel() / (in.sizes()[0] * channels);
  return {.weight = weight,
          .bias = bias,
          .eps = eps,
          .length = channels / groups * inner,
          .groups = groups,
          .inner = inner};
}
IMPL("aten::group_norm", kCUDA,
     [](const KernelContext& context, const Tensor& in, int64_t groups, MaybeTensor weight, MaybeTensor bias,
        double eps, bool, Tensor& out) {
       if (out.numel() != 0) norm_cuda(context, in, group_call(in, groups, weight, bias, eps), out);
     });
IMPL("aten::native_group_norm", kCUDA,
     [](const KernelContext& context, const Tensor& in, MaybeTensor weight, MaybeTensor bias, int64_t, int64_t, int64_t,
        int64_t groups, double eps, Tensor& out, Tensor& mean, Tensor& rstd) {
       if (out.numel() == 0) return;
       NormCall call = group_call(in, groups, weight, bias, eps);
       call.mean = &mean;
       call.rstd = &rstd;
       norm_cuda(context, in, call, out);
     });

}  // namespace
}  // namespace tensord::kernels
