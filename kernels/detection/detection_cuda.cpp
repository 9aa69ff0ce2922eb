// Columns of deformable convolutions, and values of images in boxes, on a CUDA device.
#include "core/tensor/device_copy.h"
#include "kernels/cuda/launch.h"
#include "kernels/detection/deform_conv.h"
#include "kernels/detection/regions.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;

DeformJob deform_job(const DeformGeometry& g, const Tensor& input, const Tensor& offset, const Tensor& mask,
                     const Tensor& columns) {
  DeformJob job;
  job.dtype = static_cast<int8_t>(input.dtype());
  job.images = input.sizes()[0], job.channels = input.sizes()[1];
  job.offset_groups = g.offset_groups;
  for (size_t d = 0; d < 2; ++d) {
    job.image[d] = input.sizes()[d + 2], job.out[d] = g.out[d];
    job.kernel[d] = g.kernel[d], job.stride[d] = g.stride[d];
    job.padding[d] = g.padding[d], job.dilation[d] = g.dilation[d];
  }
  job.input = input.raw_data(), job.offset = offset.raw_data(), job.columns = columns.raw_data();
  if (mask) job.mask = mask.raw_data();
  return job;
}

}  // namespace

void deform_columns_cuda(const DeformGeometry& geometry, const Tensor& input, const Tensor& offset, const Tensor& mask,
                         const Tensor& columns) {
  launch(KernelContext(input.device()), &KernelTable::deform_columns,
         deform_job(geometry, input, offset, mask, columns));
}

void deform_columns_backward_cuda(const DeformGeometry& geometry, const Tensor& grad, const Tensor& input,
                                  const Tensor& offset, const Tensor& mask, const Tensor& of_input,
                                  const Tensor& of_offset, const Tensor& of_mask) {
  DeformJob job = deform_job(geometry, input, offset, mask, grad);
  job.is_backward = true;
  if (of_input) refuse_deterministic("deform_conv2d_backward");
  if (of_input) job.of_input = of_input.raw_data();
  if (of_offset) job.of_offset = of_offset.raw_data();
  if (of_mask) job.of_mask = of_mask.raw_data();
  launch(KernelContext(input.device()), &KernelTable::deform_columns, job);
}

void regions_cuda(RegionTask task, bool is_backward, const RegionGrid& grid, const Tensor& image, const Tensor& boxes,
                  const Tensor& out, const Tensor& places) {
  const KernelContext context(image.device());
  if (is_backward) refuse_deterministic("the gradient of roi_align, roi_pool, ps_roi_align or ps_roi_pool");
  RegionJob job;
  job.task = task;
  job.is_backward = is_backward;
  job.is_aligned = grid.is_aligned, job.is_position_sensitive = grid.is_position_sensitive;
  job.dtype = static_cast<int8_t>(image.dtype());
  job.boxes = boxes.sizes()[0];
  job.images = image.sizes()[0], job.channels = image.sizes()[1];
  job.height = image.sizes()[2], job.width = image.sizes()[3];
  job.out_channels = out.sizes()[1], job.rows = grid.height, job.columns = grid.width;
  job.samples = grid.samples;
  job.scale = grid.scale;
  job.image = image.raw_data(), job.box = boxes.raw_data(), job.out = out.raw_data();
  if (places) job.places = places.raw_data();
  job.errors = errors_of(context);
  launch(context, &KernelTable::regions, job);
}

int64_t suppress_overlaps_cuda(const Tensor& boxes, const Tensor& order, double threshold, const Tensor& keep) {
  const Tensor is_gone = Tensor::empty(order.sizes(), DType::kUInt8, boxes.device()),
               count = Tensor::empty(Dims{1}, DType::kInt64, boxes.device());
  zero_elements(is_gone);
  SuppressJob job;
  job.is_double = boxes.dtype() == DType::kFloat64;
  job.count = boxes.sizes()[0];
  job.threshold = threshold;
  job.boxes = boxes.raw_data(), job.order = order.raw_data(), job.keep = keep.raw_data();
  job.is_gone = is_gone.raw_data(), job.kept = count.raw_data();
  launch(KernelContext(boxes.device()), &KernelTable::suppress_overlaps, job);
  return count.item_int();
}

}  // namespace tensord::kernels
