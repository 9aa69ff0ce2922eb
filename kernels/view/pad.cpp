// Padding: constant, reflected, replicated or wrapped around. Schemas, shapes and gradients.
#include "kernels/view/pad.h"

#include <algorithm>

#include "core/ops/attributes/batch_independence.h"
#include "core/ops/attributes/rank.h"
#include "kernels/expr/expr.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using Edges = PadEdges;
using Mode = PadMode;
using ops::IntList;
using ops::Scalar;
using ops::TensorMeta;

TensorMeta padded_meta(const Tensor& x, const IntList& pad) {
  Dims sizes = x.sizes();
  for (int64_t d = 0; d < x.ndim(); ++d) {
    const Edges edges = Edges::of(pad, d, x.ndim());
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

void check_mode(const Tensor& x, const IntList& pad, Mode mode) {
  check(pad.size() % 2 == 0, "Padding length must be divisible by 2");
  const auto dims = static_cast<int64_t>(pad.size() / 2);
  check(dims >= 1 && dims <= 3 && (x.ndim() == dims + 1 || x.ndim() == dims + 2), "padding of ", pad.size(),
        " values expects a ", dims + 1, "D or ", dims + 2, "D tensor, but got ", x.sizes());
  for (int64_t d = x.ndim() - dims; d < x.ndim(); ++d) {
    const Edges edges = Edges::of(pad, d, x.ndim());
    const int64_t size = x.sizes()[d];
    check(size > 0, "padding: expected a non-empty dimension ", d, ", but got ", x.sizes());
    if (mode == Mode::kReflect) {
      check(edges.before < size && edges.after < size,
            "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding (",
            edges.before, ", ", edges.after, ") at dimension ", d, " of input ", x.sizes());
    } else if (mode == Mode::kCircular) {
      const auto [begin, end] = edges.kept_of(size);
      check(std::max(edges.before, edges.after) <= std::max<int64_t>(end - begin, 0),
            "Padding value causes wrapping around more than once.");
    }
  }
}

template <Mode kMode>
TensorMeta mode_meta(const Tensor& x, const IntList& pad) {
  check_mode(x, pad, kMode);
  return padded_meta(x, pad);
}

// The shape of a backward operator's result.
template <Mode kMode>
TensorMeta mode_backward_meta(const Tensor& g, const Tensor& x, const IntList& pad) {
  const TensorMeta padded = mode_meta<kMode>(x, pad);
  check(padded.sizes == g.sizes(), "grad_output of shape ", g.sizes(), " where ", to_string(padded.sizes),
        " is expected");
  return {x.sizes(), g.dtype(), {}, g.device()};
}
TensorMeta any_meta(const Tensor& x, const IntList& pad, const std::string& mode, std::optional<double> value) {
  if (mode == "constant") return constant_meta(x, pad, value.value_or(0.0));
  check(!value || *value == 0, "Padding mode \"", mode, "\" doesn't take in value argument");
  if (mode == "reflect") return mode_meta<Mode::kReflect>(x, pad);
  if (mode == "replicate") return mode_meta<Mode::kReplicate>(x, pad);
  if (mode == "circular") return mode_meta<Mode::kCircular>(x, pad);
  fail(ErrorCode::kInvalidArgument, "Unrecognized padding mode ", mode);
}

using gradient::of_first;
using ops::GradArgs;

Tensor constant_gradient(const GradArgs& args, const Tensor& g) {
  Dims pad = gradient::ints_of(args, 1);
  for (int64_t& edge : pad) edge = -edge;
  return ops::constant_pad_nd(g, pad);
}
// "aten::reflection_pad2d_backward" and so on. They read only the shape of the input, so it may be a meta tensor.
Tensor mode_gradient(const GradArgs& args, const Tensor& g, Mode mode) {
  const ops::Value pad = args.inputs[1];
  const Tensor& x = args.inputs[0].to_tensor();
  if (mode == Mode::kCircular) return ops::tensord__pad_circular_backward(g, x, ops::unbox<Dims>(pad));
  const std::string dims = std::to_string(pad.to_list()->items.size() / 2);
  const std::string op =
      concat("aten::", mode == Mode::kReflect ? "reflection" : "replication", "_pad", dims, "d_backward");
  return ops::call_by_name(op.c_str(), g, x, pad);
}
Tensor any_gradient(const GradArgs& args, const Tensor& g) {
  const std::string& mode = args.inputs[2].to_string();
  if (mode == "constant") return constant_gradient(args, g);
  return mode_gradient(args, g,
                       mode == "reflect"     ? Mode::kReflect
                       : mode == "replicate" ? Mode::kReplicate
                                             : Mode::kCircular);
}

OP("aten::constant_pad_nd")
    .set<ops::BatchIndependent>([](std::span<const ops::Value> v) {
      return v[1].is_list() && static_cast<int64_t>(v[1].to_list()->items.size()) < 2 * v[0].to_tensor().ndim();
    })
    .set<ops::KeepsRank>()
    .infer(constant_meta)
    .gradient(of_first(constant_gradient))
    .saves("");
OP("aten::pad").infer(any_meta).gradient(of_first(any_gradient)).saves("");

gradient::GradientFn gradient_of_mode(Mode mode) {
  return of_first([mode](const GradArgs& args, const Tensor& g) { return mode_gradient(args, g, mode); });
}
gradient::GradientFn pad_again(const char* op) {
  return [op](const GradArgs& args) {
    std::vector<Tensor> gradients(args.inputs.size());
    if (args.needs(0)) gradients[0] = ops::call_by_name(op, args.grad_outputs[0], args.inputs[2]);
    if (args.needs(1)) gradients[1] = gradient::zeros_like(args.inputs[1]);
    return gradients;
  };
}
#define FIXED_PAD(NAME, MODE)                                                          \
  OP("aten::" NAME).infer(mode_meta<MODE>).gradient(gradient_of_mode(MODE)).saves(""); \
  OP("aten::" NAME "_backward").infer(mode_backward_meta<MODE>).gradient(pad_again("aten::" NAME)).saves("")
FIXED_PAD("reflection_pad1d", Mode::kReflect);
FIXED_PAD("reflection_pad2d", Mode::kReflect);
FIXED_PAD("reflection_pad3d", Mode::kReflect);
FIXED_PAD("replication_pad1d", Mode::kReplicate);
FIXED_PAD("replication_pad2d", Mode::kReplicate);
FIXED_PAD("replication_pad3d", Mode::kReplicate);
OP("aten::_pad_circular").infer(mode_meta<Mode::kCircular>).gradient(gradient_of_mode(Mode::kCircular)).saves("");
OP("tensord::_pad_circular_backward")
    .infer(mode_backward_meta<Mode::kCircular>)
    .gradient(pad_again("aten::_pad_circular"))
    .saves("");

}  // namespace
}  // namespace tensord::kernels
