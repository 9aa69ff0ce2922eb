// Copies of a tensor read backwards along some dimensions.
#include "core/ops/op.h"
#include "core/tensor/device_copy.h"
#include "kernels/view/view.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;

void flip_kernel(const KernelContext&, const Tensor& x, const IntList& dims, Tensor& out) {
  if (x.numel() == 0) return;
  // Reads x backwards: from the last element with negative strides.
  Dims strides = x.strides();
  int64_t start = 0;
  for (int64_t dim : dims) {
    if (x.ndim() == 0) break;
    const int64_t at = wrap_dim(dim, x.ndim());
    start += (x.sizes()[at] - 1) * strides[at];
    strides[at] = -strides[at];
  }
  copy_elements(out, x.as_view(x.sizes(), strides, x.offset() + start));
}

IMPL("aten::flip", kCPU, flip_kernel);
IMPL("aten::fliplr", kCPU,
     [](const KernelContext& context, const Tensor& x, Tensor& out) { flip_kernel(context, x, Dims{1}, out); });
IMPL("aten::flipud", kCPU,
     [](const KernelContext& context, const Tensor& x, Tensor& out) { flip_kernel(context, x, Dims{0}, out); });

}  // namespace
}  // namespace tensord::kernels
