// Padding on the CPU: the inside is copied, and the rest is read through a map of offsets.
#include <algorithm>
#include <optional>
#include <vector>

#include "core/base/parallel.h"
#include "core/ops/op.h"
#include "core/tensor/device_copy.h"
#include "kernels/base/positions.h"
#include "kernels/view/pad.h"
#include "kernels/view/view.h"

namespace tensord::kernels {
namespace {

using ops::KernelContext;
using ops::Scalar;
using Edges = PadEdges;
using Mode = PadMode;

void constant_kernel(const KernelContext&, const Tensor& x, const IntList& pad, const Scalar& value, Tensor& out) {
  if (out.numel() == 0) return;
  out.copy_from(value.is_float() ? Tensor::scalar(value.to_double()) : Tensor::scalar(value.to_int()));
  // The part of x that is kept, at its place in the result; negative padding crops.
  Tensor from = x, to = out;
  for (int64_t d = 0; d < x.ndim(); ++d) {
    const Edges edges = Edges::of(pad, d, x.ndim());
    const int64_t skip = std::max<int64_t>(-edges.before, 0), start = std::max<int64_t>(edges.before, 0);
    const int64_t length = std::max<int64_t>(
        0, std::min(x.sizes()[d] - skip - std::max<int64_t>(-edges.after, 0), out.sizes()[d] - start));
    if (length == 0) return;
    from = narrow(from, d, skip, length);
    to = narrow(to, d, start, length);
  }
  copy_elements(to, from);
}

// For every position of the padded dimensions, its offset in the result and in x; the dimensions before them are looped
// over.
struct PadMap {
  std::vector<int64_t> x_inner{0}, out_inner, x_outer, out_outer;

  PadMap(Mode mode, const Tensor& x, const IntList& pad, const Tensor& out) {
    const auto dims = static_cast<int64_t>(pad.size() / 2), first = x.ndim() - dims;
    for (int64_t d = first; d < x.ndim(); ++d) {
      const Edges edges = Edges::of(pad, d, x.ndim());
      const auto kept = edges.kept_of(x.sizes()[d]);
      std::vector<int64_t> next;
      next.reserve(x_inner.size() * static_cast<size_t>(out.sizes()[d]));
      for (int64_t offset : x_inner) {
        for (int64_t i = 0; i < out.sizes()[d]; ++i) {
          next.push_back(offset + pad_source(mode, i - edges.before, x.sizes()[d], kept) * x.strides()[d]);
        }
      }
      x_inner = std::move(next);
    }
    const auto leading = static_cast<size_t>(first);
    out_inner = element_offsets(out.sizes().span().subspan(leading), out.strides().span().subspan(leading));
    x_outer = element_offsets(x.sizes().span().first(leading), x.strides().span().first(leading));
    out_outer = element_offsets(out.sizes().span().first(leading), out.strides().span().first(leading));
  }
  // Calls fn(offset in x, offset in the result) for all of them; one thread has all positions of a plane.
  template <class Fn>
  void for_each(Fn&& fn) const {
    parallel_for(static_cast<int64_t>(x_outer.size()),
                 std::max<int64_t>(1, 16384 / std::max<int64_t>(1, static_cast<int64_t>(out_inner.size()))),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t o = begin; o < end; ++o) {
                     for (size_t i = 0; i < out_inner.size(); ++i)
                       fn(x_outer[o] + x_inner[i], out_outer[o] + out_inner[i]);
                   }
                 });
  }
};

template <Mode kMode>
void mode_kernel(const KernelContext&, const Tensor& x, const IntList& pad, Tensor& out) {
  if (out.numel() == 0) return;
  const PadMap map(kMode, x, pad, out);
  dispatch_width(x.dtype(), [&]<class T>() {
    const T* from = static_cast<const T*>(x.raw_data());
    T* to = static_cast<T*>(out.raw_data());
    map.for_each([&](int64_t source, int64_t target) { to[target] = from[source]; });
  });
}

// The transpose: adds every element of g at the place that it was read from.
template <Mode kMode>
void mode_backward_kernel(const KernelContext&, const Tensor& g, const Tensor&, const IntList& pad, Tensor& out) {
  if (out.numel() == 0) return;
  zero_elements(out);
  if (g.numel() == 0) return;
  const PadMap map(kMode, out, pad, g);
  dispatch_floating(g.dtype(), "padding backward", [&]<class T>() {
    const T* from = g.data<T>();
    T* to = out.data<T>();
    map.for_each([&](int64_t target, int64_t source) { to[target] = static_cast<T>(to[target] + from[source]); });
  });
}

void any_kernel(const KernelContext& context, const Tensor& x, const IntList& pad, const std::string& mode,
                std::optional<double> value, Tensor& out) {
  if (mode == "constant")
    constant_kernel(context, x, pad, value.value_or(0.0), out);
  else if (mode == "reflect")
    mode_kernel<Mode::kReflect>(context, x, pad, out);
  else if (mode == "replicate")
    mode_kernel<Mode::kReplicate>(context, x, pad, out);
  else
    mode_kernel<Mode::kCircular>(context, x, pad, out);
}

IMPL("aten::constant_pad_nd", kCPU, constant_kernel);
IMPL("aten::pad", kCPU, any_kernel);
#define FIXED_PAD_KERNELS(NAME, MODE)           \
  IMPL("aten::" NAME, kCPU, mode_kernel<MODE>); \
  IMPL("aten::" NAME "_backward", kCPU, mode_backward_kernel<MODE>)
FIXED_PAD_KERNELS("reflection_pad1d", Mode::kReflect);
FIXED_PAD_KERNELS("reflection_pad2d", Mode::kReflect);
FIXED_PAD_KERNELS("reflection_pad3d", Mode::kReflect);
FIXED_PAD_KERNELS("replication_pad1d", Mode::kReplicate);
FIXED_PAD_KERNELS("replication_pad2d", Mode::kReplicate);
FIXED_PAD_KERNELS("replication_pad3d", Mode::kReplicate);
IMPL("aten::_pad_circular", kCPU, mode_kernel<Mode::kCircular>);
IMPL("tensord::_pad_circular_backward", kCPU, mode_backward_kernel<Mode::kCircular>);

}  // namespace
}  // namespace tensord::kernels
