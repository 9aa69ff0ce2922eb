// im2col and col2im on the CPU.
#include <algorithm>

#include "core/base/parallel.h"
#include "kernels/base/positions.h"
#include "kernels/vision/columns.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;

void im2col_kernel(const KernelContext&, const Tensor& x, const IntList& kernel, const IntList& dilation,
                   const IntList& padding, const IntList& stride, Tensor& out) {
  if (out.numel() == 0) return;
  const ImageWindows windows("im2col", {x.size(-2), x.size(-1)}, kernel, dilation, padding, stride);
  const Tensor image = x.contiguous(), result = out.is_contiguous() ? out : Tensor::empty(out.sizes(), out.dtype());
  const int64_t places = windows.rows * windows.columns, plane = windows.height * windows.width;
  dispatch_width(x.dtype(), [&]<class T>() {
    const T* from = static_cast<const T*>(image.raw_data());
    T* to = static_cast<T*>(result.raw_data());
    parallel_for(result.numel() / places, std::max<int64_t>(1, 8192 / places), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        T* columns = to + row * places;
        const T* pixels = from + row / windows.taps() * plane;
        std::fill_n(columns, places, T(0));
        windows.for_each_run(row % windows.taps(), [&](int64_t at, int64_t count, int64_t pixel) {
          for (int64_t i = 0; i < count; ++i) columns[at + i] = pixels[pixel + i * stride[1]];
        });
      }
    });
  });
  if (!result.is_same(out)) out.copy_from(result);
}

// Sums of T are in T, as in PyTorch, with the taps in order.
void col2im_kernel(const KernelContext&, const Tensor& x, const IntList& size, const IntList& kernel,
                   const IntList& dilation, const IntList& padding, const IntList& stride, Tensor& out) {
  if (out.numel() == 0) return;
  const ImageWindows windows("col2im", size, kernel, dilation, padding, stride);
  const Tensor columns = x.contiguous(), result = out.is_contiguous() ? out : Tensor::empty(out.sizes(), out.dtype());
  const int64_t places = windows.rows * windows.columns, plane = windows.height * windows.width;
  dispatch_floating(x.dtype(), "col2im", [&]<class T>() {
    const T* from = columns.data<T>();
    T* to = result.data<T>();
    parallel_for(result.numel() / plane, 1, [&](int64_t begin, int64_t end) {
      for (int64_t image = begin; image < end; ++image) {
        T* pixels = to + image * plane;
        std::fill_n(pixels, plane, T(0));
        for (int64_t tap = 0; tap < windows.taps(); ++tap) {
          const T* column = from + (image * windows.taps() + tap) * places;
          windows.for_each_run(tap, [&](int64_t at, int64_t count, int64_t pixel) {
            for (int64_t i = 0; i < count; ++i) {
              T& sum = pixels[pixel + i * stride[1]];
              sum = static_cast<T>(sum + column[at + i]);
            }
          });
        }
      }
    });
  });
  if (!result.is_same(out)) out.copy_from(result);
}

IMPL("aten::im2col", kCPU, im2col_kernel);
IMPL("aten::col2im", kCPU, col2im_kernel);

}  // namespace
}  // namespace tensord::kernels
