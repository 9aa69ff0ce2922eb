// Gradients of views: zeros with the incoming gradient in its place.
#include <algorithm>

#include "core/ops/op.h"
#include "core/tensor/device_copy.h"
#include "core/tensor/strided_copy.h"
#include "kernels/view/geometry.h"
#include "kernels/view/view.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;

// Fills `out` (row-major) with zeros except for `part`, a view of it that gets `g`.
void place(const Tensor& out, const Tensor& part, const Tensor& g) {
  check(part.sizes() == g.sizes(), "the gradient has the shape ", g.sizes(), " where ", part.sizes(), " is expected");
  if (part.numel() < out.numel()) zero_elements(out);
  if (g.numel() != 0) copy_elements(part, g);
}

// target += source, of equal sizes; elements of the target may overlap.
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

IMPL("aten::select_backward", kCPU,
     [](const KernelContext&, const Tensor& g, const IntList&, int64_t dim, int64_t index, Tensor& out) {
       place(out, select(out, dim, index), g);
     });

IMPL("aten::slice_backward", kCPU,
     [](const KernelContext&, const Tensor& g, const IntList&, int64_t dim, int64_t start, int64_t end, int64_t step,
        Tensor& out) { place(out, slice(out, dim, start, end, step), g); });

IMPL("aten::diagonal_backward", kCPU,
     [](const KernelContext&, const Tensor& g, const IntList&, int64_t offset, int64_t dim1, int64_t dim2,
        Tensor& out) { place(out, diagonal(out, offset, dim1, dim2), g); });

IMPL("aten::unfold_backward", kCPU,
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

// --- as_strided: from elements in one memory layout to those in another

// Divides each memory location by how many elements of the geometry it holds.
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

// out = the elements that `to` reads from memory that holds x in the layout `from`, and zeros elsewhere. Elements of x
// that overlap are summed; elements that overlap in `input`, one of the two layouts, share the value.
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

void scatter_add_kernel(const KernelContext&, const Tensor& g, const IntList& input_sizes, const IntList& input_strides,
                        int64_t input_offset, const IntList& size, const IntList& stride, int64_t offset, Tensor& out) {
  const Geometry input{input_sizes, input_strides, input_offset};
  move_geometry(g, {size, stride, offset}, input, input, out);
}
IMPL("tensord::as_strided_scatter_add", kCPU, scatter_add_kernel);

void gather_kernel(const KernelContext&, const Tensor& x, const IntList& self_strides, int64_t self_offset,
                   const IntList& size, const IntList& stride, int64_t offset, Tensor& out) {
  const Geometry input{x.sizes(), self_strides, self_offset};
  move_geometry(x, input, {size, stride, offset}, input, out);
}
IMPL("tensord::as_strided_gather", kCPU, gather_kernel);

}  // namespace
}  // namespace tensord::kernels
