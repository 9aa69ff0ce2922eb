// im2col and col2im on a CUDA device.
#include "kernels/base/lines.h"
#include "kernels/cuda/launch.h"
#include "kernels/vision/columns.h"

namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::KernelContext;

// Computes `out` from `from`, which is dense.
void run_columns(const KernelContext& context, const ImageWindows& windows, bool is_back, const Tensor& from,
                 const Tensor& out) {
  const Tensor dense = out.is_contiguous() ? out : Tensor::empty(out.sizes(), out.dtype(), out.device());
  ColumnsJob job;
  job.is_back = is_back;
  job.loop = static_cast<int8_t>(loop_dtype(out.dtype()));
  job.dtype = static_cast<int8_t>(out.dtype());
  job.width = static_cast<int8_t>(size_of(out.dtype()));
  job.image[0] = windows.height, job.image[1] = windows.width;
  job.places[0] = windows.rows, job.places[1] = windows.columns;
  const int64_t plane = is_back ? windows.height * windows.width : windows.taps() * windows.rows * windows.columns;
  job.planes = out.numel() / plane;
  for (size_t d = 0; d < 2; ++d) {
    job.kernel[d] = windows.kernel[d], job.dilation[d] = windows.dilation[d];
    job.padding[d] = windows.padding[d], job.stride[d] = windows.stride[d];
  }
  job.from = from.raw_data(), job.to = dense.raw_data();
  launch(context, &KernelTable::image_columns, job);
  if (!dense.is_same(out)) out.copy_from(dense);
}

IMPL("aten::im2col", kCUDA,
     [](const KernelContext& context, const Tensor& x, const IntList& kernel, const IntList& dilation,
        const IntList& padding, const IntList& stride, Tensor& out) {
       if (out.numel() == 0) return;
       const ImageWindows windows("im2col", {x.size(-2), x.size(-1)}, kernel, dilation, padding, stride);
       run_columns(context, windows, false, x.contiguous(), out);
     });
IMPL("aten::col2im", kCUDA,
     [](const KernelContext& context, const Tensor& x, const IntList& size, const IntList& kernel,
        const IntList& dilation, const IntList& padding, const IntList& stride, Tensor& out) {
       if (out.numel() == 0) return;
       const ImageWindows windows("col2im", size, kernel, dilation, padding, stride);
       run_columns(context, windows, true, x.contiguous(), out);
     });

}  // namespace
}  // namespace tensord::kernels
