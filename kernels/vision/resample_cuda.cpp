// Upsampling and grid_sampler on a CUDA device.
#include "core/tensor/device_copy.h"
#include "kernels/base/lines.h"
#include "kernels/cuda/launch.h"
#include "kernels/vision/grid_sampler.h"
#include "kernels/vision/upsample.h"

namespace tensord::kernels {
namespace {

void set_image_strides(const Tensor& t, int64_t (&strides)[5]) {
  const size_t spatial = t.sizes().size() - 2;
  strides[0] = t.strides()[0], strides[1] = t.strides()[1];
  for (size_t d = 0; d < spatial; ++d) strides[5 - spatial + d] = t.strides()[2 + d];
}

// The taps of all dimensions, kept on the device while the job is queued.
struct DeviceTaps {
  Tensor index, weight;
  DeviceTaps(const Resampling& resampling, Device device, ResampleJob& job) {
    int64_t count = 0;
    for (const ResampleAxis& axis : resampling.axes) count += static_cast<int64_t>(axis.index.size());
    const Tensor places = Tensor::empty(Dims{count}, DType::kInt64),
                 weights = Tensor::empty(Dims{count}, DType::kFloat64);
    int64_t at = 0;
    for (size_t d = 0; d < 3; ++d) {
      const ResampleAxis& axis = resampling.axes[d];
      job.taps[d] = axis.taps;
      job.first[d] = at;
      std::copy(axis.index.begin(), axis.index.end(), places.data<int64_t>() + at);
      std::copy(axis.weight.begin(), axis.weight.end(), weights.data<double>() + at);
      at += static_cast<int64_t>(axis.index.size());
    }
    index = places.to(device), weight = weights.to(device);
    job.index = index.raw_data(), job.weight = weight.raw_data();
  }
};

void run_resampling(const Resampling& resampling, ResampleJob& job, const Tensor& in, const Tensor& out) {
  const DeviceTaps taps(resampling, out.device(), job);
  job.loop = static_cast<int8_t>(loop_dtype(resampling.dtype));
  job.in_dtype = static_cast<int8_t>(in.dtype()), job.out_dtype = static_cast<int8_t>(out.dtype());
  job.is_last = resampling.is_last;
  job.batch = resampling.extents.batch, job.channels = resampling.extents.channels;
  for (size_t d = 0; d < 3; ++d) job.in[d] = resampling.extents.in[d], job.out[d] = resampling.extents.out[d];
  set_image_strides(in, job.in_strides);
  set_image_strides(out, job.out_strides);
  job.in_at = in.raw_data(), job.out_at = out.raw_data();
  launch(ops::KernelContext(out.device()), &KernelTable::resample, job);
}

}  // namespace

void resample_cuda(const Resampling& resampling, const Tensor& in, const Tensor& out) {
  ResampleJob job;
  const bool copies = resampling.axes[0].taps * resampling.axes[1].taps * resampling.axes[2].taps == 1;
  if (copies) job.width = static_cast<int8_t>(size_of(in.dtype()));
  run_resampling(resampling, job, in, out);
}

void resample_backward_cuda(const Resampling& resampling, const Tensor& g, const Tensor& out) {
  const DType wide = loop_dtype(out.dtype());
  const bool is_direct = out.dtype() == wide && is_non_overlapping_and_dense(out.sizes(), out.strides());
  const Tensor sums = is_direct ? out : Tensor::empty(out.sizes(), wide, out.device());
  zero_elements(sums);
  ResampleJob job;
  job.is_backward = true;
  job.is_ordered = execution_context().numerics.is_deterministic;
  if (g.numel() != 0) run_resampling(resampling, job, sums, g);
  if (!is_direct) out.copy_from(sums);
}

namespace {

GridSampleJob grid_job(const GridSampling& how, const Tensor& input, const Tensor& grid, const Tensor& out) {
  GridSampleJob job;
  const size_t spatial = input.sizes().size() - 2;
  job.dtype = static_cast<int8_t>(input.dtype());
  job.interpolation = static_cast<int8_t>(how.interpolation), job.padding = static_cast<int8_t>(how.padding);
  job.align_corners = how.align_corners;
  job.spatial = static_cast<int>(spatial);
  job.batch = input.sizes()[0], job.channels = input.sizes()[1];
  job.grid_strides[0] = grid.strides()[0], job.grid_strides[4] = grid.strides()[spatial + 1];
  for (size_t d = 0; d < spatial; ++d) {
    job.in[3 - spatial + d] = input.sizes()[d + 2], job.out[3 - spatial + d] = out.sizes()[d + 2];
    job.grid_strides[4 - spatial + d] = grid.strides()[d + 1];
  }
  set_image_strides(input, job.input_strides);
  set_image_strides(out, job.out_strides);
  job.input = input.raw_data(), job.grid = grid.raw_data(), job.result = out.raw_data();
  return job;
}

}  // namespace

void grid_sample_cuda(const GridSampling& how, const Tensor& input, const Tensor& grid, const Tensor& out) {
  launch(ops::KernelContext(out.device()), &KernelTable::grid_sample, grid_job(how, input, grid, out));
}

void grid_sample_backward_cuda(const GridSampling& how, const Tensor& grad, const Tensor& input, const Tensor& grid,
                               const Tensor& of_input, const Tensor& of_grid) {
  GridSampleJob job = grid_job(how, input, grid, grad);
  job.is_backward = true;
  if (of_input) refuse_deterministic("grid_sampler_backward");
  if (of_input) job.of_input = of_input.raw_data(), set_image_strides(of_input, job.of_input_strides);
  if (of_grid) job.of_grid = of_grid.raw_data();
  launch(ops::KernelContext(grad.device()), &KernelTable::grid_sample, job);
}

}  // namespace tensord::kernels
