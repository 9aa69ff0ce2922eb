// im2col and col2im: the windows of a convolution as columns, and the sum of columns back to an image.
#include "kernels/vision/columns.h"
#include "core/ops/attributes/written.h"
#include "kernels/expr/expr.h"
#include "ops/vision.h"

namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::TensorMeta;
using ops::WritesInto;

TensorMeta im2col_meta(const Tensor& x, const IntList& kernel, const IntList& dilation, const IntList& padding,
                       const IntList& stride) {
  check((x.ndim() == 3 || x.ndim() == 4) && x.size(-1) > 0 && x.size(-2) > 0 && x.size(-3) > 0,
        "im2col: Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
        "input, but got: ",
        x.sizes());
  const ImageWindows windows("im2col", {x.size(-2), x.size(-1)}, kernel, dilation, padding, stride);
  Dims sizes;
  if (x.ndim() == 4) sizes.push_back(x.size(0));
  int64_t rows = 0;
  check(!__builtin_mul_overflow(x.size(-3), windows.taps(), &rows), "im2col: the size of the result overflows");
  sizes.push_back(rows);
  sizes.push_back(windows.rows * windows.columns);
  return {sizes, x.dtype(), {}, x.device()};
}

TensorMeta col2im_meta(const Tensor& x, const IntList& size, const IntList& kernel, const IntList& dilation,
                       const IntList& padding, const IntList& stride) {
  check(size.size() == 2 && size[0] > 0 && size[1] > 0, "col2im: output_size should be two positive numbers, but got ",
        to_string(size));
  check(is_floating(x.dtype()), "col2im: not implemented for ", name_of(x.dtype()));
  const ImageWindows windows("col2im", size, kernel, dilation, padding, stride);
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

OP("aten::im2col")
    .infer(im2col_meta)
    .gradient(gradient::of_first([](const ops::GradArgs& args, Tensor g) {
      const Tensor& x = args.inputs[0].to_tensor();
      return ops::col2im(g, Dims{x.size(-2), x.size(-1)}, ops::unbox<Dims>(args.inputs[1]),
                         ops::unbox<Dims>(args.inputs[2]), ops::unbox<Dims>(args.inputs[3]),
                         ops::unbox<Dims>(args.inputs[4]));
    }))
    .saves("")
    .set<WritesInto>(WritesInto::kSameDType);
OP("aten::col2im")
    .infer(col2im_meta)
    .gradient(gradient::of_first([](const ops::GradArgs& args, Tensor g) {
      return ops::im2col(g, ops::unbox<Dims>(args.inputs[2]), ops::unbox<Dims>(args.inputs[3]),
                         ops::unbox<Dims>(args.inputs[4]), ops::unbox<Dims>(args.inputs[5]));
    }))
    .saves("")
    .set<WritesInto>(WritesInto::kSameDType);

}  // namespace
}  // namespace tensord::kernels
