// Gradients of views: the incoming one at its place in zeros. Linear in their first argument, so
// the gradient of each is the view itself.
#include <algorithm>
#include <limits>

#include "core/tensor/device_copy.h"
#include "core/tensor/strided_copy.h"
#include "kernels/fused/gradient_expr.h"
#include "kernels/view/view.h"

namespace tensord::kernels {
namespace {

using gradient::of_first;
using ops::call;
using ops::GradArgs;
using ops::KernelContext;
using ops::TensorMeta;

TensorMeta like_input(const Tensor& g, const IntList& sizes) {
  checked_numel(sizes);
  return {sizes, g.dtype(), {}, g.device()};
}

// Fills `out` (row-major) with zeros but for `part`, a view of it that gets `g`.
void place(const Tensor& out, const Tensor& part, const Tensor& g) {
  check(part.sizes() == g.sizes(), "the gradient has the shape ", g.sizes(), " where ", part.sizes(), " is expected");
  if (part.numel() < out.numel()) zero_elements(out);
  if (g.numel() != 0) strided_copy(part, g);
}

// target += source, of one shape; elements of the target may coincide.
template <class T>
void add_strided(const Dims& sizes, T* target, const Dims& target_strides, const T* source,
                 const Dims& source_strides) {
  const LoopNest<2> nest(sizes, {target_strides, source_strides});
  nest.rows(0, nest.numel(),
            [&](const std::array<int64_t, 2>& offset, int64_t count, const std::array<int64_t, 2>& step) {
              T* to = target + offset[0];
              const T* from = source + offset[1];
              for (int64_t i = 0; i < count; ++i) to[i * step[0]] = static_cast<T>(to[i * step[0]] + from[i * step[1]]);
            });
}

OP("aten::select_backward(Tensor grad_output, int[] input_sizes, int dim, int index) -> Tensor")
    .infer([](const Tensor& g, const IntList& sizes, int64_t, int64_t) { return like_input(g, sizes); })
    .gradient(of_first([](const GradArgs& args, const Tensor& g) {
      return call("aten::select.int", g, args.inputs[2], args.inputs[3]);
    }))
    .saves("");
KERNEL("aten::select_backward", kCPU,
       [](const KernelContext&, const Tensor& g, const IntList&, int64_t dim, int64_t index, Tensor& out) {
         place(out, select(out, dim, index), g);
       });

OP("aten::slice_backward(Tensor grad_output, int[] input_sizes, int dim, int start, int end, int step) -> Tensor")
    .infer([](const Tensor& g, const IntList& sizes, int64_t, int64_t, int64_t, int64_t) {
      return like_input(g, sizes);
    })
    .gradient(of_first([](const GradArgs& args, const Tensor& g) {
      return call("aten::slice.Tensor", g, args.inputs[2], args.inputs[3], args.inputs[4], args.inputs[5]);
    }))
    .saves("");
KERNEL("aten::slice_backward", kCPU,
       [](const KernelContext&, const Tensor& g, const IntList&, int64_t dim, int64_t start, int64_t end, int64_t step,
          Tensor& out) { place(out, slice(out, dim, start, end, step), g); });

OP("aten::diagonal_backward(Tensor grad_output, int[] input_sizes, int offset, int dim1, int dim2) -> Tensor")
    .infer([](const Tensor& g, const IntList& sizes, int64_t, int64_t, int64_t) { return like_input(g, sizes); })
    .gradient(of_first([](const GradArgs& args, const Tensor& g) {
      return call("aten::diagonal", g, args.inputs[2], args.inputs[3], args.inputs[4]);
    }))
    .saves("");
KERNEL("aten::diagonal_backward", kCPU,
       [](const KernelContext&, const Tensor& g, const IntList&, int64_t offset, int64_t dim1, int64_t dim2,
          Tensor& out) { place(out, diagonal(out, offset, dim1, dim2), g); });

OP("aten::unfold_backward(Tensor grad_in, int[] input_sizes, int dim, int size, int step) -> Tensor")
    .infer([](const Tensor& g, const IntList& sizes, int64_t, int64_t, int64_t) { return like_input(g, sizes); })
    .gradient(of_first([](const GradArgs& args, const Tensor& g) {
      return call("aten::unfold", g, args.inputs[2], args.inputs[3], args.inputs[4]);
    }))
    .saves("");
KERNEL("aten::unfold_backward", kCPU,
       [](const KernelContext&, const Tensor& g, const IntList&, int64_t dim, int64_t size, int64_t step, Tensor& out) {
         const Tensor windows = unfold(out, dim, size, step);
         check(windows.sizes() == g.sizes(), "the gradient has the shape ", g.sizes(), " where ", windows.sizes(),
               " is expected");
         zero_elements(out);
         if (g.numel() == 0) return;
         dispatch_all(g.dtype(), "unfold_backward", [&]<class T>() {
           add_strided<T>(g.sizes(), windows.data<T>(), windows.strides(), g.data<T>(), g.strides());
         });
       });

// --- as_strided: from elements that lie one way in memory to those that lie another way.

struct Geometry {
  Dims sizes, strides;
  int64_t offset;

  void check_valid() const {
    check(sizes.size() == strides.size(), "mismatch in length of strides and shape");
    check(offset >= 0, "Tensor: invalid storage offset ", offset);
    for (const int64_t stride : strides) check(stride >= 0, "as_strided: Negative strides are not supported");
    for (const int64_t size : sizes) check(size >= 0, "as_strided: negative size ", size);
  }
  bool is_empty() const { return std::find(sizes.begin(), sizes.end(), 0) != sizes.end(); }
  // One past the last element.
  int64_t end() const {
    int64_t last = offset;
    for (size_t d = 0; d < sizes.size(); ++d) {
      int64_t reach;
      const bool fits = !__builtin_mul_overflow(sizes[d] - 1, strides[d], &reach) &&
                        !__builtin_add_overflow(last, reach, &last) && last < std::numeric_limits<int64_t>::max();
      check(fits, "as_strided: the strides overflow");
    }
    return last + 1;
  }
};

// Divides memory by how many elements of the geometry lie in each place.
template <class T>
void divide_by_counts(const Geometry& by, T* base, int64_t begin, int64_t end) {
  if (std::find(by.strides.begin(), by.strides.end(), 0) == by.strides.end()) return;
  std::vector<T> counts(static_cast<size_t>(end - begin), static_cast<T>(0.0f));
  const T one = static_cast<T>(1.0f);
  add_strided<T>(by.sizes, counts.data() + (by.offset - begin), by.strides, &one, Dims(by.sizes.size(), 0));
  for (int64_t i = 0; i < end - begin; ++i) {
    if (counts[i] > one) base[i] = static_cast<T>(base[i] / counts[i]);
  }
}

// out = what `to` reads of memory that holds x as `from` says, zeros elsewhere. Elements of x that
// coincide are added; those that coincide in `input`, which is one of the two, share the value.
void move_geometry(const Tensor& x, const Geometry& from, const Geometry& to, const Geometry& input, Tensor& out) {
  if (out.numel() == 0) return;
  if (x.numel() == 0) return zero_elements(out);
  const int64_t begin = std::min(from.offset, to.offset), end = std::max(from.end(), to.end());
  dispatch_floating(x.dtype(), "as_strided", [&]<class T>() {
    const Tensor memory = Tensor::empty(Dims{end - begin}, x.dtype());
    zero_elements(memory);
    T* base = memory.data<T>();
    add_strided<T>(from.sizes, base + (from.offset - begin), from.strides, x.data<T>(), x.strides());
    divide_by_counts<T>(input, base, begin, end);
    strided_copy(out, memory.as_view(to.sizes, to.strides, to.offset - begin));
  });
}

TensorMeta geometry_meta(const Tensor& x, const Geometry& from, const Geometry& to) {
  from.check_valid();
  to.check_valid();
  check(x.sizes() == from.sizes, "as_strided: a tensor of shape ", x.sizes(), " where ", to_string(from.sizes),
        " is expected");
  checked_numel(to.sizes);
  return {to.sizes, x.dtype(), {}, x.device()};
}

// The gradient of as_strided: g lies as (size, stride, storage_offset), the result as the rest says.
OP("tensord::as_strided_scatter_add(Tensor grad_output, int[] input_sizes, int[] input_strides, int input_offset, "
   "int[] "
   "size, int[] stride, int storage_offset) -> Tensor")
    .infer([](const Tensor& g, const IntList& input_sizes, const IntList& input_strides, int64_t input_offset,
              const IntList& size, const IntList& stride, int64_t offset) {
      return geometry_meta(g, {size, stride, offset}, {input_sizes, input_strides, input_offset});
    })
    .gradient(of_first([](const GradArgs& args, const Tensor& g) {
      return call("tensord::as_strided_gather", g, args.inputs[2], args.inputs[3], args.inputs[4], args.inputs[5],
                  args.inputs[6]);
    }))
    .saves("");
void scatter_add_kernel(const KernelContext&, const Tensor& g, const IntList& input_sizes, const IntList& input_strides,
                        int64_t input_offset, const IntList& size, const IntList& stride, int64_t offset, Tensor& out) {
  const Geometry input{input_sizes, input_strides, input_offset};
  move_geometry(g, {size, stride, offset}, input, input, out);
}
KERNEL("tensord::as_strided_scatter_add", kCPU, scatter_add_kernel);

// As as_strided, of a tensor that is taken to lie in memory as `self_strides` and `self_offset` say.
OP("tensord::as_strided_gather(Tensor self, int[] self_strides, int self_offset, int[] size, int[] stride, int "
   "storage_offset) -> Tensor")
    .infer([](const Tensor& x, const IntList& self_strides, int64_t self_offset, const IntList& size,
              const IntList& stride, int64_t offset) {
      return geometry_meta(x, {x.sizes(), self_strides, self_offset}, {size, stride, offset});
    })
    .gradient(of_first([](const GradArgs& args, const Tensor& g) {
      return call("tensord::as_strided_scatter_add", g, gradient::sizes_of(args, 0), args.inputs[1], args.inputs[2],
                  args.inputs[3], args.inputs[4], args.inputs[5]);
    }))
    .saves("");
void gather_kernel(const KernelContext&, const Tensor& x, const IntList& self_strides, int64_t self_offset,
                   const IntList& size, const IntList& stride, int64_t offset, Tensor& out) {
  const Geometry input{x.sizes(), self_strides, self_offset};
  move_geometry(x, input, {size, stride, offset}, input, out);
}
KERNEL("tensord::as_strided_gather", kCPU, gather_kernel);

}  // namespace
}  // namespace tensord::kernels
