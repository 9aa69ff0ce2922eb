// Work along lines, and ranges and triangles, on a CUDA device.
#include <algorithm>
#include <optional>

#include "core/tensor/device_copy.h"
#include "kernels/base/lines.h"
#include "kernels/cuda/launch.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;
using ops::Scalar;
using ops::Value;
using MaybeDType = std::optional<DType>;

ScanJob line_job(const Tensor& in, int64_t dim, const Dims& out_strides, const Dims& position_strides) {
  const LoopNest<3> nest(without(in.sizes(), dim), {without(in.strides(), dim), out_strides, position_strides});
  if (nest.ndim() > static_cast<size_t>(kScanDims))
    fail(ErrorCode::kUnimplemented, "work along lines on CUDA takes at most ", kScanDims,
         " dimensions that cannot be merged");
  ScanJob job;
  job.in_dtype = static_cast<int8_t>(in.dtype());
  job.dims = static_cast<int>(nest.ndim());
  job.length = line_length(in, dim);
  job.lines = nest.numel();
  job.in_step = line_stride(in, dim);
  for (size_t d = 0; d < nest.ndim(); ++d) {
    job.sizes[d] = nest.size(d);
    job.in_strides[d] = nest.stride(0, d);
    job.out_strides[d] = nest.stride(1, d);
    job.position_strides[d] = nest.stride(2, d);
  }
  job.in = in.raw_data();
  return job;
}

void scan_line_cuda(const KernelContext& context, LineUse use, const Tensor& in, int64_t dim, const Tensor& out) {
  if (out.numel() == 0) return;
  dim = wrap_dim(dim, in.ndim());
  const Dims rest = without(out.strides(), dim);
  ScanJob job = line_job(in, dim, rest, rest);
  job.use = use;
  job.loop = static_cast<int8_t>(is_floating(out.dtype()) ? DType::kFloat64 : DType::kInt64);
  job.out_dtype = static_cast<int8_t>(out.dtype());
  job.out_step = line_stride(out, dim);
  job.out = out.raw_data();
  launch(context, &KernelTable::scan, job);
}
template <LineUse kUse>
void cumulative_cuda(const KernelContext& context, const Tensor& in, int64_t dim, MaybeDType, Tensor& out) {
  scan_line_cuda(context, kUse, in, dim, out);
}
IMPL("aten::cumsum", kCUDA, cumulative_cuda<LineUse::kCumulativeSum>);
IMPL("aten::cumprod", kCUDA, cumulative_cuda<LineUse::kCumulativeProduct>);

IMPL("aten::logcumsumexp", kCUDA, [](const KernelContext& context, const Tensor& in, int64_t dim, Tensor& out) {
  scan_line_cuda(context, LineUse::kLogSum, in, dim, out);
});

template <LineUse kUse>
void running_cuda(const KernelContext& context, const Tensor& in, int64_t dim, Tensor& values, Tensor& positions) {
  if (in.numel() == 0) return;
  dim = wrap_dim(dim, in.ndim());
  ScanJob job = line_job(in, dim, without(values.strides(), dim), without(positions.strides(), dim));
  job.use = kUse;
  job.loop = static_cast<int8_t>(loop_dtype(in.dtype()));
  job.out_dtype = static_cast<int8_t>(values.dtype());
  job.out_step = line_stride(values, dim);
  job.position_step = line_stride(positions, dim);
  job.out = values.raw_data();
  job.positions = positions.raw_data();
  launch(context, &KernelTable::scan, job);
}
IMPL("aten::cummax", kCUDA, running_cuda<LineUse::kRunningLargest>);
IMPL("aten::cummin", kCUDA, running_cuda<LineUse::kRunningSmallest>);

// `values` may be null. Both outputs have size 1 (or no dimension) at `dim`.
void extremes_cuda(const KernelContext& context, LineUse use, const Tensor& in, int64_t dim, const Tensor* values,
                   const Tensor& positions, bool keepdim) {
  if (positions.numel() == 0) return;
  const auto rest = [&](const Tensor& out) { return keepdim ? without(out.strides(), dim) : out.strides(); };
  ScanJob job = line_job(in, dim, rest(values ? *values : positions), rest(positions));
  job.use = use;
  job.loop = static_cast<int8_t>(loop_dtype(in.dtype()));
  if (values) job.out = values->raw_data(), job.out_dtype = static_cast<int8_t>(values->dtype());
  job.positions = positions.raw_data();
  launch(context, &KernelTable::scan, job);
}
template <LineUse kUse>
void extreme_by_dim(const KernelContext& context, const Tensor& in, int64_t dim, bool keepdim, Tensor& values,
                    Tensor& positions) {
  extremes_cuda(context, kUse, in, wrap_dim(dim, in.ndim()), &values, positions, keepdim && in.ndim() > 0);
}
template <LineUse kUse>
void extreme_position(const KernelContext& context, const Tensor& in, std::optional<int64_t> dim, bool keepdim,
                      Tensor& positions) {
  if (dim)
    return extremes_cuda(context, kUse, in, wrap_dim(*dim, in.ndim()), nullptr, positions, keepdim && in.ndim() > 0);
  const Tensor dense = in.contiguous(), flat = dense.as_view({dense.numel()}, {1}, dense.offset());
  extremes_cuda(context, kUse, flat, 0, nullptr, positions.as_view({1}, {1}, positions.offset()), true);
}
IMPL("aten::max.dim", kCUDA, extreme_by_dim<LineUse::kLargest>);
IMPL("aten::min.dim", kCUDA, extreme_by_dim<LineUse::kSmallest>);
IMPL("aten::argmax", kCUDA, extreme_position<LineUse::kLargest>);
IMPL("aten::argmin", kCUDA, extreme_position<LineUse::kSmallest>);

FillJob fill_job(const Tensor& out, FillUse use) {
  FillJob job;
  job.use = use;
  job.dtype = static_cast<int8_t>(out.dtype());
  job.is_integer = !is_floating(out.dtype());
  job.is_double = out.dtype() == DType::kFloat64;
  job.numel = out.numel();
  job.out = out.raw_data();
  return job;
}

void range_cuda(const KernelContext& context, const Scalar& start, const Scalar&, const Scalar& step, MaybeDType,
                const Value&, std::optional<Device>, std::optional<bool>, Tensor& out) {
  if (out.numel() == 0) return;
  FillJob job = fill_job(out, FillUse::kRange);
  if (job.is_integer)
    job.first = start.to<int64_t>(), job.step = step.to<int64_t>();
  else
    job.start = start.to_double(), job.stride = step.to_double();
  launch(context, &KernelTable::fill, job);
}
void range_end_cuda(const KernelContext& context, const Scalar& end, MaybeDType dtype, const Value& layout,
                    std::optional<Device> device, std::optional<bool> pin, Tensor& out) {
  range_cuda(context, 0, end, 1, dtype, layout, device, pin, out);
}
void range_start_cuda(const KernelContext& context, const Scalar& start, const Scalar& end, MaybeDType dtype,
                      const Value& layout, std::optional<Device> device, std::optional<bool> pin, Tensor& out) {
  range_cuda(context, start, end, 1, dtype, layout, device, pin, out);
}
IMPL("aten::arange", kCUDA, range_end_cuda);
IMPL("aten::arange.start", kCUDA, range_start_cuda);
IMPL("aten::arange.start_step", kCUDA, range_cuda);

FillJob linear_job(const Scalar& start, const Scalar& end, int64_t steps, FillUse use, const Tensor& out) {
  FillJob job = fill_job(out, use);
  const bool is_whole = job.is_integer && use == FillUse::kLinear;
  job.start = is_whole ? static_cast<double>(start.to<int64_t>()) : start.to_double();
  job.end = is_whole ? static_cast<double>(end.to<int64_t>()) : end.to_double();
  if (steps < 2) return job;
  const auto gaps = static_cast<double>(steps - 1);
  const bool is_single = use == FillUse::kLinear && !job.is_double;
  job.stride = is_single ? static_cast<float>(is_whole ? job.end - job.start
                                                       : static_cast<float>(job.end) - static_cast<float>(job.start)) /
                               static_cast<float>(steps - 1)
                         : (job.end - job.start) / gaps;
  return job;
}
void linspace_cuda(const KernelContext& context, const Scalar& start, const Scalar& end, int64_t steps, MaybeDType,
                   const Value&, std::optional<Device>, std::optional<bool>, Tensor& out) {
  if (out.numel() != 0) launch(context, &KernelTable::fill, linear_job(start, end, steps, FillUse::kLinear, out));
}
void logspace_cuda(const KernelContext& context, const Scalar& start, const Scalar& end, int64_t steps, double base,
                   MaybeDType, const Value&, std::optional<Device>, std::optional<bool>, Tensor& out) {
  if (out.numel() == 0) return;
  FillJob job = linear_job(start, end, steps, FillUse::kPower, out);
  job.base = base;
  launch(context, &KernelTable::fill, job);
}
IMPL("aten::linspace", kCUDA, linspace_cuda);
IMPL("aten::logspace", kCUDA, logspace_cuda);

template <bool kLower>
void triangle_cuda(const KernelContext& context, const Tensor& x, int64_t k, Tensor& out) {
  if (x.numel() == 0) return;
  const Tensor dense = out.is_contiguous() ? out : Tensor::empty(out.sizes(), out.dtype(), out.device());
  copy_elements(dense, x);
  FillJob job = fill_job(dense, FillUse::kTriangle);
  job.is_lower = kLower;
  job.rows = x.size(-2), job.columns = x.size(-1);
  job.diagonal = std::clamp<int64_t>(k, -job.rows - 1, job.columns + 1);
  launch(context, &KernelTable::fill, job);
  if (!dense.is_same(out)) copy_elements(out, dense);
}
IMPL("aten::tril", kCUDA, triangle_cuda<true>);
IMPL("aten::triu", kCUDA, triangle_cuda<false>);

}  // namespace
}  // namespace tensord::kernels
