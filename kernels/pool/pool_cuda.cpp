// Pooling on a CUDA device.
#include <limits>
#include <optional>

#include "core/tensor/device_copy.h"
#include "kernels/base/lines.h"
#include "kernels/cuda/launch.h"
#include "kernels/pool/fractional.h"
#include "kernels/pool/pool.h"

namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::KernelContext;

int8_t pool_code(const Tensor& t) { return static_cast<int8_t>(t.dtype()); }

void set_pool_strides(const Tensor& t, size_t spatial, int64_t (&strides)[5]) {
  const size_t ndim = t.sizes().size();
  strides[0] = ndim == spatial + 2 ? t.strides()[0] : 0;
  strides[1] = t.strides()[ndim - spatial - 1];
  for (size_t d = 0; d < spatial; ++d) strides[5 - spatial + d] = t.strides()[ndim - spatial + d];
}

PoolJob pool_job(const PoolProblem& pool, PoolTask task, const Tensor& large, const Tensor& small) {
  PoolJob job;
  job.task = task;
  job.divisor = static_cast<int8_t>(pool.divisor);
  job.fixed = pool.fixed;
  job.spatial = static_cast<int>(pool.spatial);
  job.is_last = is_pool_last(large, small, pool.spatial);
  const PoolExtents extents = pool_extents(large, small, pool.spatial);
  job.batch = extents.batch, job.channels = extents.channels;
  for (size_t d = 0; d < 3; ++d) {
    job.in[d] = extents.in[d], job.out[d] = extents.out[d];
    const PoolAxis& axis = pool.windows.axes[d];
    if (axis.kernel == 0) job.places = PoolPlaces::kAdaptive;
    job.kernel[d] = axis.kernel, job.stride[d] = axis.stride, job.padding[d] = axis.padding, job.step[d] = axis.step;
  }
  job.small = small.raw_data(), job.small_dtype = pool_code(small);
  set_pool_strides(small, pool.spatial, job.small_strides);
  return job;
}
void set_compared(PoolJob& job, const PoolProblem& pool, const Tensor& x) {
  job.x = x.raw_data(), job.x_dtype = pool_code(x);
  set_pool_strides(x, pool.spatial, job.x_strides);
}
void set_written(PoolJob& job, const PoolProblem& pool, const Tensor& out) {
  job.large = out.raw_data(), job.large_dtype = pool_code(out);
  set_pool_strides(out, pool.spatial, job.large_strides);
}

}  // namespace

void run_pool_cuda(const PoolProblem& pool, const Tensor& input, const Tensor& out, const Tensor& indices) {
  if (!pool.is_max && input.numel() == 0)  // only an adaptive average gets here: the mean of no elements
    return out.copy_from(Tensor::scalar(std::numeric_limits<double>::quiet_NaN()));
  PoolJob job = pool_job(pool, pool.is_max ? PoolTask::kMax : PoolTask::kAverage, input, out);
  job.loop = static_cast<int8_t>(loop_dtype(input.dtype()));
  set_compared(job, pool, input);
  if (indices) job.indices = indices.raw_data(), set_pool_strides(indices, pool.spatial, job.index_strides);
  launch(KernelContext(out.device()), &KernelTable::pool, job);
}

void max_pool_backward_cuda(const PoolProblem& pool, const Tensor& g, const Tensor& x, const Tensor& indices,
                            const Tensor& out) {
  const DType wide = out.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const bool is_direct = out.dtype() == wide && is_non_overlapping_and_dense(out.sizes(), out.strides());
  const Tensor sums = is_direct ? out : Tensor::empty(out.sizes(), wide, out.device());
  zero_elements(sums);
  if (g.numel() != 0) {
    const KernelContext context(out.device());
    PoolJob job = pool_job(pool, PoolTask::kMaxBackward, x, g);
    job.is_ordered = execution_context().numerics.is_deterministic;
    job.loop = static_cast<int8_t>(wide);
    set_written(job, pool, sums);
    if (indices)  // x may then be a meta tensor
      job.indices = indices.raw_data(), set_pool_strides(indices, pool.spatial, job.index_strides);
    else
      set_compared(job, pool, x);
    job.errors = errors_of(context);
    launch(context, &KernelTable::pool, job);
  }
  if (!is_direct) out.copy_from(sums);
}

void avg_pool_backward_cuda(const PoolProblem& pool, const Tensor& g, const Tensor& out) {
  if (g.numel() == 0) return out.copy_from(Tensor::scalar(0.0));
  PoolJob job = pool_job(pool, PoolTask::kAverageBackward, out, g);
  job.loop = static_cast<int8_t>(loop_dtype(out.dtype()));
  set_written(job, pool, out);
  launch(KernelContext(out.device()), &KernelTable::pool, job);
}

namespace {

template <int kDims>
void fractional_pool_cuda(const KernelContext& context, const Tensor& x, const IntList& window, const IntList& output,
                          const Tensor& given_samples, Tensor& values, Tensor& places) {
  if (values.numel() == 0) return;
  const FractionalPool s = make_fractional_pool(kDims, x, window, output, given_samples);
  const Tensor samples = given_samples.contiguous();
  PoolProblem pool{{}, kDims, true};
  for (size_t d = 0; d < 3; ++d) {
    pool.windows.axes[d].kernel = s.window[d];
    pool.windows.axes[d].stride = 1;
  }
  PoolJob job = pool_job(pool, PoolTask::kMax, x, values);
  job.places = PoolPlaces::kFractional;
  job.loop = pool_code(x);
  set_compared(job, pool, x);
  job.indices = places.raw_data();
  set_pool_strides(places, pool.spatial, job.index_strides);
  job.samples = samples.raw_data();
  launch(context, &KernelTable::pool, job);
}
IMPL("aten::fractional_max_pool2d", kCUDA, fractional_pool_cuda<2>);
IMPL("aten::fractional_max_pool3d", kCUDA, fractional_pool_cuda<3>);

}  // namespace
}  // namespace tensord::kernels
