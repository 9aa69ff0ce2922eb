// im2col and col2im: the windows of a convolution as columns, and the sum of columns back into an image.
#include "core/base/parallel.h"
#include "kernels/fused/gradient_expr.h"
#include "kernels/index/index.h"

namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::KernelContext;
using ops::TensorMeta;

// Windows over images [N, C, height, width] and their columns [N, C · kernel, places].
struct Windows {
  int64_t images = 0, channels = 0, height = 0, width = 0;
  IntList kernel, dilation, padding, stride;
  int64_t rows = 0, columns = 0;  // places for the window

  Windows(const char* op, const IntList& image_size, const IntList& kernel, const IntList& dilation,
          const IntList& padding, const IntList& stride)
      : height(image_size[0]),
        width(image_size[1]),
        kernel(kernel),
        dilation(dilation),
        padding(padding),
        stride(stride) {
    const auto pair = [&](const IntList& value, int64_t least, const char* name) {
      check(value.size() == 2 && value[0] >= least && value[1] >= least && value[0] < kLimit && value[1] < kLimit, op,
            ": ", name, " should be greater than ", least == 0 ? "or equal to zero" : "zero", ", but got ",
            to_string(value));
    };
    pair(kernel, 1, "kernel_size");
    pair(dilation, 1, "dilation");
    pair(padding, 0, "padding");
    pair(stride, 1, "stride");
    rows = places(height, 0);
    columns = places(width, 1);
    check(height < kLimit && width < kLimit && rows >= 1 && columns >= 1, op, ": given image with spatial size (",
          height, ", ", width, "), kernel_size=", to_string(kernel), ", dilation=", to_string(dilation),
          ", padding=", to_string(padding), ", calculated shape of the array of sliding blocks as (", rows, ", ",
          columns, "), but its components must be at least one");
  }

  int64_t taps() const { return kernel[0] * kernel[1]; }

  // Calls visit(row of columns, position in it, count, position in the image, step) for every run of places of one tap
  // within one channel that lie in the image.
  template <class Visit>
  void for_each_run(int64_t tap, Visit&& visit) const {
    const int64_t down = tap / kernel[1] * dilation[0] - padding[0], right = tap % kernel[1] * dilation[1] - padding[1];
    const int64_t first = right >= 0 ? 0 : (-right + stride[1] - 1) / stride[1];
    const int64_t last = right >= width ? -1 : std::min(columns - 1, (width - 1 - right) / stride[1]);
    for (int64_t row = 0; row < rows && first <= last; ++row) {
      const int64_t y = row * stride[0] + down;
      if (y < 0 || y >= height) continue;
      visit(row * columns + first, last - first + 1, y * width + first * stride[1] + right);
    }
  }

 private:
  static constexpr int64_t kLimit = int64_t{1} << 30;  // products of two stay within int64
  int64_t places(int64_t size, size_t d) const {
    return (size + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1;
  }
};

TensorMeta im2col_meta(const Tensor& x, const IntList& kernel, const IntList& dilation, const IntList& padding,
                       const IntList& stride) {
  check((x.ndim() == 3 || (x.ndim() == 4 && x.size(0) >= 0)) && x.size(-1) > 0 && x.size(-2) > 0 && x.size(-3) > 0,
        "im2col: Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
        "input, but got: ",
        x.sizes());
  const Windows windows("im2col", {x.size(-2), x.size(-1)}, kernel, dilation, padding, stride);
  Dims sizes;
  if (x.ndim() == 4) sizes.push_back(x.size(0));
  int64_t rows = 0;
  check(!__builtin_mul_overflow(x.size(-3), windows.taps(), &rows), "im2col: the size of the result overflows");
  sizes.push_back(rows);
  sizes.push_back(windows.rows * windows.columns);
  return {sizes, x.dtype(), {}, x.device()};
}

void im2col_kernel(const KernelContext&, const Tensor& x, const IntList& kernel, const IntList& dilation,
                   const IntList& padding, const IntList& stride, Tensor& out) {
  if (out.numel() == 0) return;
  const Windows windows("im2col", {x.size(-2), x.size(-1)}, kernel, dilation, padding, stride);
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

TensorMeta col2im_meta(const Tensor& x, const IntList& size, const IntList& kernel, const IntList& dilation,
                       const IntList& padding, const IntList& stride) {
  check(size.size() == 2 && size[0] > 0 && size[1] > 0, "col2im: output_size should be two positive numbers, but got ",
        to_string(size));
  check(is_floating(x.dtype()), "col2im: not implemented for ", name_of(x.dtype()));
  const Windows windows("col2im", size, kernel, dilation, padding, stride);
  check(
      (x.ndim() == 2 || x.ndim() == 3) && x.size(-1) > 0 && x.size(-2) > 0,
      "col2im: Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
      "input, but got: ",
      x.sizes());
  check(x.size(-2) % windows.taps() == 0,
        "col2im: Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
        "input.size(1)=",
        x.size(-2), " and kernel_size=", to_string(kernel));
  check(x.size(-1) == windows.rows * windows.columns, "col2im: Given output_size=", to_string(size),
        ", expected size of input's dimension 2 to match the calculated number of sliding blocks ", windows.rows, " * ",
        windows.columns, " = ", windows.rows * windows.columns, ", but got input.size(2)=", x.size(-1));
  Dims sizes;
  if (x.ndim() == 3) sizes.push_back(x.size(0));
  sizes.push_back(x.size(-2) / windows.taps());
  sizes.push_back(size[0]);
  sizes.push_back(size[1]);
  return {sizes, x.dtype(), {}, x.device()};
}

// Sums of T are in T, as PyTorch's; taps in their order.
void col2im_kernel(const KernelContext&, const Tensor& x, const IntList& size, const IntList& kernel,
                   const IntList& dilation, const IntList& padding, const IntList& stride, Tensor& out) {
  if (out.numel() == 0) return;
  const Windows windows("col2im", size, kernel, dilation, padding, stride);
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

OP("aten::im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor")
    .infer(im2col_meta)
    .gradient(gradient::of_first([](const ops::GradArgs& args, Tensor g) {
      const Tensor& x = args.inputs[0].to_tensor();
      return ops::call("aten::col2im", g, Dims{x.size(-2), x.size(-1)}, args.inputs[1], args.inputs[2], args.inputs[3],
                       args.inputs[4]);
    }))
    .saves("")
    .with_out();
KERNEL("aten::im2col", kCPU, im2col_kernel);
OP("aten::col2im(Tensor self, int[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) "
   "-> Tensor")
    .infer(col2im_meta)
    .gradient(gradient::of_first([](const ops::GradArgs& args, Tensor g) {
      return ops::call("aten::im2col", g, args.inputs[2], args.inputs[3], args.inputs[4], args.inputs[5]);
    }))
    .saves("")
    .with_out();
KERNEL("aten::col2im", kCPU, col2im_kernel);

}  // namespace
}  // namespace tensord::kernels
