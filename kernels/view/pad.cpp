#include <algorithm>

#include "core/base/parallel.h"
#include "core/ops/rank.h"
#include "core/ops/samples.h"
#include "core/tensor/device_copy.h"
#include "core/tensor/strided_copy.h"
#include "kernels/fused/gradient_expr.h"
#include "kernels/index/index.h"
#include "kernels/view/view.h"

// Padding: constant, reflected, replicated or wrapped around.
namespace tensord::kernels {
namespace {

using ops::KernelContext;
using ops::Scalar;
using ops::TensorMeta;

// Padding of dimension d: pairs come for the last dimension first.
struct Edges {
  int64_t before = 0, after = 0;
};
Edges edges_of(const IntList& pad, int64_t d, int64_t ndim) {
  const auto pair = static_cast<size_t>(ndim - 1 - d);
  if (2 * pair >= pad.size()) return {};
  return {pad[2 * pair], pad[2 * pair + 1]};
}

TensorMeta padded_meta(const Tensor& x, const IntList& pad) {
  Dims sizes = x.sizes();
  for (int64_t d = 0; d < x.ndim(); ++d) {
    const Edges edges = edges_of(pad, d, x.ndim());
    int64_t size = sizes[d];
    const bool fits =
        !__builtin_add_overflow(size, edges.before, &size) && !__builtin_add_overflow(size, edges.after, &size);
    check(fits && size >= 0, "The input size ", x.sizes()[d], ", plus negative padding ", edges.before, " and ",
          edges.after, " resulted in a negative output size, which is invalid. Check dimension ", d, " of your input.");
    sizes[d] = size;
  }
  const bool channels_last = x.is_channels_last() && !x.is_contiguous();
  Dims strides = channels_last ? channels_last_strides(sizes) : Dims();
  return {std::move(sizes), x.dtype(), std::move(strides), x.device()};
}

TensorMeta constant_meta(const Tensor& x, const IntList& pad, const Scalar&) {
  check(pad.size() % 2 == 0, "Length of pad must be even but instead it equals ", pad.size());
  check(static_cast<int64_t>(pad.size()) <= 2 * x.ndim(),
        "Length of pad should be no more than twice the number of dimensions of the input. Pad length is ", pad.size(),
        "while the input has ", x.ndim(), "dimensions.");
  return padded_meta(x, pad);
}

void constant_kernel(const KernelContext&, const Tensor& x, const IntList& pad, const Scalar& value, Tensor& out) {
  if (out.numel() == 0) return;
  out.copy_from(value.is_float() ? Tensor::scalar(value.to_double()) : Tensor::scalar(value.to_int()));
  // The part of x that stays, at its place in the result; negative padding crops.
  Tensor from = x, to = out;
  for (int64_t d = 0; d < x.ndim(); ++d) {
    const Edges edges = edges_of(pad, d, x.ndim());
    const int64_t skip = std::max<int64_t>(-edges.before, 0), start = std::max<int64_t>(edges.before, 0);
    const int64_t length = std::max<int64_t>(
        0, std::min(x.sizes()[d] - skip - std::max<int64_t>(-edges.after, 0), out.sizes()[d] - start));
    if (length == 0) return;
    from = narrow(from, d, skip, length);
    to = narrow(to, d, start, length);
  }
  strided_copy(to, from);
}

enum class Mode { kReflect, kReplicate, kCircular };

// Where position i of the result (0 = first element of the input) is read.
int64_t source_of(Mode mode, int64_t i, int64_t size) {
  switch (mode) {
    case Mode::kReflect:
      if (i < 0) i = -i;
      return i >= size ? 2 * (size - 1) - i : i;
    case Mode::kReplicate: return std::clamp<int64_t>(i, 0, size - 1);
    default: return i < 0 ? i + size : i >= size ? i - size : i;
  }
}

void check_mode(const Tensor& x, const IntList& pad, Mode mode) {
  check(pad.size() % 2 == 0, "Padding length must be divisible by 2");
  const auto dims = static_cast<int64_t>(pad.size() / 2);
  check(dims >= 1 && dims <= 3 && (x.ndim() == dims + 1 || x.ndim() == dims + 2), "padding of ", pad.size(),
        " values expects a ", dims + 1, "D or ", dims + 2, "D tensor, but got ", x.sizes());
  for (int64_t d = x.ndim() - dims; d < x.ndim(); ++d) {
    const Edges edges = edges_of(pad, d, x.ndim());
    const int64_t size = x.sizes()[d];
    check(size > 0, "padding: expected a non-empty dimension ", d, ", but got ", x.sizes());
    if (mode == Mode::kReflect) {
      check(edges.before < size && edges.after < size,
            "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding (",
            edges.before, ", ", edges.after, ") at dimension ", d, " of input ", x.sizes());
    } else if (mode == Mode::kCircular) {
      check(edges.before <= size && edges.after <= size, "Padding value causes wrapping around more than once.");
    }
  }
}

template <Mode kMode>
TensorMeta mode_meta(const Tensor& x, const IntList& pad) {
  check_mode(x, pad, kMode);
  return padded_meta(x, pad);
}

// For every position of the padded dimensions its offset in the result and in x; the dimensions
// before them walk outside.
struct PadMap {
  std::vector<int64_t> x_inner{0}, out_inner, x_outer, out_outer;

  PadMap(Mode mode, const Tensor& x, const IntList& pad, const Tensor& out) {
    const auto dims = static_cast<int64_t>(pad.size() / 2), first = x.ndim() - dims;
    for (int64_t d = first; d < x.ndim(); ++d) {
      const Edges edges = edges_of(pad, d, x.ndim());
      std::vector<int64_t> next;
      next.reserve(x_inner.size() * static_cast<size_t>(out.sizes()[d]));
      for (int64_t offset : x_inner) {
        for (int64_t i = 0; i < out.sizes()[d]; ++i) {
          next.push_back(offset + source_of(mode, i - edges.before, x.sizes()[d]) * x.strides()[d]);
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

// The other way round: every element of g is added where it came from.
template <Mode kMode>
TensorMeta mode_backward_meta(const Tensor& g, const Tensor& x, const IntList& pad) {
  const TensorMeta padded = mode_meta<kMode>(x, pad);
  check(padded.sizes == g.sizes(), "grad_output of shape ", g.sizes(), " where ", to_string(padded.sizes),
        " is expected");
  return {x.sizes(), g.dtype(), {}, g.device()};
}
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

TensorMeta any_meta(const Tensor& x, const IntList& pad, const std::string& mode, std::optional<double> value) {
  if (mode == "constant") return constant_meta(x, pad, value.value_or(0.0));
  check(!value || *value == 0, "Padding mode \"", mode, "\" doesn't take in value argument");
  if (mode == "reflect") return mode_meta<Mode::kReflect>(x, pad);
  if (mode == "replicate") return mode_meta<Mode::kReplicate>(x, pad);
  if (mode == "circular") return mode_meta<Mode::kCircular>(x, pad);
  fail(ErrorCode::kInvalidArgument, "Unrecognised padding mode ", mode);
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

using gradient::of_first;
using ops::call;
using ops::GradArgs;

Tensor constant_gradient(const GradArgs& args, const Tensor& g) {
  Dims pad = gradient::ints_of(args, 1);
  for (int64_t& edge : pad) edge = -edge;
  return call("aten::constant_pad_nd", g, pad, 0);
}
// "aten::reflection_pad2d_backward" and so on; the shape of the input is all they read of it, so a
// meta tensor will do.
Tensor mode_gradient(const GradArgs& args, const Tensor& g, Mode mode) {
  const ops::Value pad = args.inputs[1];
  const Tensor& x = args.inputs[0].to_tensor();
  if (mode == Mode::kCircular) return call("tensord::_pad_circular_backward", g, x, pad);
  const std::string dims = std::to_string(pad.to_list()->items.size() / 2);
  const std::string op =
      concat("aten::", mode == Mode::kReflect ? "reflection" : "replication", "_pad", dims, "d_backward");
  return call(op.c_str(), g, x, pad);
}
Tensor any_gradient(const GradArgs& args, const Tensor& g) {
  const std::string& mode = args.inputs[2].to_string();
  if (mode == "constant") return constant_gradient(args, g);
  return mode_gradient(args, g,
                       mode == "reflect"     ? Mode::kReflect
                       : mode == "replicate" ? Mode::kReplicate
                                             : Mode::kCircular);
}

OP("aten::constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor")
    .set<ops::KeepsSamples>([](std::span<const ops::Value> v) {
      return v[1].is_list() && static_cast<int64_t>(v[1].to_list()->items.size()) < 2 * v[0].to_tensor().ndim();
    })
    .set<ops::KeepsRank>()
    .infer(constant_meta)
    .gradient(of_first(constant_gradient))
    .saves("");
KERNEL("aten::constant_pad_nd", kCPU, constant_kernel);
OP("aten::pad(Tensor self, int[] pad, str mode=\"constant\", float? value=None) -> Tensor")
    .infer(any_meta)
    .gradient(of_first(any_gradient))
    .saves("");
KERNEL("aten::pad", kCPU, any_kernel);

gradient::GradientFn gradient_of_mode(Mode mode) {
  return of_first([mode](const GradArgs& args, const Tensor& g) { return mode_gradient(args, g, mode); });
}
gradient::GradientFn pad_again(const char* op) {
  return [op](const GradArgs& args) {
    std::vector<Tensor> gradients(args.inputs.size());
    if (args.needs(0)) gradients[0] = call(op, args.grad_outputs[0], args.inputs[2]);
    if (args.needs(1)) gradients[1] = gradient::zeros_like(args.inputs[1]);
    return gradients;
  };
}
#define FIXED_PAD(NAME, COUNT, MODE)                                                               \
  OP("aten::" NAME "(Tensor self, int[" COUNT "] padding) -> Tensor")                              \
      .infer(mode_meta<MODE>)                                                                      \
      .gradient(gradient_of_mode(MODE))                                                            \
      .saves("");                                                                                  \
  KERNEL("aten::" NAME, kCPU, mode_kernel<MODE>);                                                  \
  OP("aten::" NAME "_backward(Tensor grad_output, Tensor self, int[" COUNT "] padding) -> Tensor") \
      .infer(mode_backward_meta<MODE>)                                                             \
      .gradient(pad_again("aten::" NAME))                                                          \
      .saves("");                                                                                  \
  KERNEL("aten::" NAME "_backward", kCPU, mode_backward_kernel<MODE>)
FIXED_PAD("reflection_pad1d", "2", Mode::kReflect);
FIXED_PAD("reflection_pad2d", "4", Mode::kReflect);
FIXED_PAD("reflection_pad3d", "6", Mode::kReflect);
FIXED_PAD("replication_pad1d", "2", Mode::kReplicate);
FIXED_PAD("replication_pad2d", "4", Mode::kReplicate);
FIXED_PAD("replication_pad3d", "6", Mode::kReplicate);
OP("aten::_pad_circular(Tensor self, int[] pad) -> Tensor")
    .infer(mode_meta<Mode::kCircular>)
    .gradient(gradient_of_mode(Mode::kCircular))
    .saves("");
KERNEL("aten::_pad_circular", kCPU, mode_kernel<Mode::kCircular>);
OP("tensord::_pad_circular_backward(Tensor grad_output, Tensor self, int[] pad) -> Tensor")
    .infer(mode_backward_meta<Mode::kCircular>)
    .gradient(pad_again("aten::_pad_circular"))
    .saves("");
KERNEL("tensord::_pad_circular_backward", kCPU, mode_backward_kernel<Mode::kCircular>);

}  // namespace
}  // namespace tensord::kernels
