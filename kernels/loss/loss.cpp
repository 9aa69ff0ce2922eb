// Losses of elements: a function of input and target, then a sum or a mean. Their gradients are written out, since that
// takes fewer passes than the gradients of the composed operators.
#include "kernels/loss/loss.h"
#include "core/ops/complex.h"

#include <cmath>

#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/expr/expr.h"
#include "ops/loss.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {

void check_reduction(int64_t reduction) {
  check(reduction >= kLossNone && reduction <= kLossSum, reduction, " is not a valid value for reduction");
}

Tensor reduce_loss(const Tensor& losses, int64_t reduction) {
  check_reduction(reduction);
  if (reduction == kLossNone) return losses;
  return reduction == kLossMean ? ops::mean(losses) : ops::sum(losses);
}

namespace {

using gradient::Expr;
using MaybeTensor = std::optional<Tensor>;

Expr clamp(const Expr& x, double low, double high) { return Expr(ops::clamp(x.tensor(), low, high)); }
Expr clamp_min(const Expr& x, double low) { return Expr(ops::clamp_min(x.tensor(), low)); }
Expr unary(const char* op, const Expr& x) { return Expr(ops::call_by_name(op, x.tensor())); }
Expr from_one(const Expr& x) { return Expr(ops::rsub(x.tensor(), 1.0)); }
// PyTorch writes these losses into a tensor with the dtype of one argument.
Tensor as_dtype_of(const Tensor& like, const Expr& losses) {
  const DType dtype = losses.tensor().dtype();
  check(can_cast(dtype, like.dtype()), "result type ", name_of(dtype), " can't be cast to the desired output type ",
        name_of(like.dtype()));
  return dtype == like.dtype() ? losses.tensor() : ops::to(losses.tensor(), like.dtype());
}
// PyTorch multiplies the losses by a weight in place, so the weight must not broadcast them.
void check_weighted(const Tensor& losses, const Dims& sizes) {
  check(losses.sizes() == sizes, "output with shape ", to_string(sizes), " doesn't match the broadcast shape ",
        losses.sizes());
}
Expr log_sigmoid(const Expr& x) { return unary("aten::log_sigmoid", x); }

// The gradient that flows into each element's loss.
Expr incoming(const Tensor& grad, const Tensor& x, const Tensor& target, int64_t reduction) {
  Expr g = grad;
  if (reduction != kLossMean) return g;
  return g / static_cast<double>(checked_numel(broadcast_sizes(x.sizes(), target.sizes())));
}

// The gradient of a loss of input - target. The named operator computes the input's; the target's is its negative.
// Arguments 0 and 1 are input and target, 2 is the reduction, 3 whatever else there is.
gradient::GradientFn difference_gradient(const char* name) {
  return [name](const ops::GradArgs& args) {
    std::vector<Tensor> out(args.inputs.size());
    if (!args.grad_outputs[0].defined()) return out;
    const Tensor &grad = args.grad_outputs[0], &x = args.inputs[0].to_tensor(), &target = args.inputs[1].to_tensor();
    // In the dtype of the first operand, as in PyTorch. With two different dtypes the target's gradient is computed
    // separately.
    const auto of = [&](const Tensor& a, const Tensor& b) -> Expr {
      return args.inputs.size() > 3 ? ops::call_by_name(name, grad, a, b, args.inputs[2], args.inputs[3])
                                    : ops::call_by_name(name, grad, a, b, args.inputs[2]);
    };
    const bool needs_target = args.needs(1) && is_floating(target.dtype()), is_same = x.dtype() == target.dtype();
    Expr g;
    if (args.needs(0) || (needs_target && is_same)) g = of(x, target);
    if (args.needs(0)) out[0] = gradient::fit_gradient(g, x);
    if (needs_target) out[1] = gradient::fit_gradient(is_same ? -g : of(target, x), target);
    return out;
  };
}

OP("aten::mse_loss")
    .impl([](const Tensor& x, const Tensor& target, int64_t reduction) {
      return reduce_loss(gradient::square(Expr(x) - Expr(target)).tensor(), reduction);
    })
    .gradient(difference_gradient("aten::mse_loss_backward"))
    .saves("self, target")
    .kind(ops::OpKind::kComposite);

OP("aten::mse_loss_backward")
    .impl([](const Tensor& grad, const Tensor& x, const Tensor& target, int64_t reduction) {
      return as_dtype_of(x, (Expr(x) - Expr(target)) * 2.0 * incoming(grad, x, target, reduction));
    })
    .composite();

OP("tensord::l1_loss_backward")
    .impl([](const Tensor& grad, const Tensor& x, const Tensor& target, int64_t reduction) {
      return as_dtype_of(x, gradient::sign(Expr(x) - Expr(target)) * incoming(grad, x, target, reduction));
    })
    .composite();
OP("aten::l1_loss")
    .impl([](const Tensor& x, const Tensor& target, int64_t reduction) {
      return reduce_loss(gradient::abs(Expr(x) - Expr(target)).tensor(), reduction);
    })
    .gradient(difference_gradient("tensord::l1_loss_backward"))
    .saves("self, target")
    .kind(ops::OpKind::kComposite);

IMPL("aten::l1_loss", ops::kComplexComposite, [](const Tensor& x, const Tensor& target, int64_t reduction) {
  return reduce_loss(gradient::abs(Expr(x) - Expr(target)).tensor(), reduction);
});

// Half of the square up to `delta`, a line beyond.
Expr huber(const Expr& difference, double delta) {
  const Expr size = gradient::abs(difference), near = clamp(size, 0, delta);
  return near * (size - near * 0.5);
}
OP("aten::huber_loss")
    .impl([](const Tensor& x, const Tensor& target, int64_t reduction, double delta) {
      check(delta > 0, "huber_loss does not support non-positive values for delta.");
      return reduce_loss(as_dtype_of(x, huber(Expr(x) - Expr(target), delta)), reduction);
    })
    .gradient(difference_gradient("aten::huber_loss_backward"))
    .saves("self, target")
    .kind(ops::OpKind::kComposite);
OP("aten::huber_loss_backward")
    .impl([](const Tensor& grad, const Tensor& x, const Tensor& target, int64_t reduction, double delta) {
      return as_dtype_of(x, clamp(Expr(x) - Expr(target), -delta, delta) * incoming(grad, x, target, reduction));
    })
    .composite();
// The same divided by beta; with beta 0, the absolute value.
OP("aten::smooth_l1_loss")
    .impl([](const Tensor& x, const Tensor& target, int64_t reduction, double beta) {
      check(beta >= 0, "smooth_l1_loss does not support negative values for beta.");
      const Expr difference = Expr(x) - Expr(target);
      const Expr losses = beta == 0 ? gradient::abs(difference) : huber(difference, beta) / beta;
      return reduce_loss(losses.tensor(), reduction);
    })
    .gradient(difference_gradient("aten::smooth_l1_loss_backward"))
    .saves("self, target")
    .kind(ops::OpKind::kComposite);

OP("aten::smooth_l1_loss_backward")
    .impl([](const Tensor& grad, const Tensor& x, const Tensor& target, int64_t reduction, double beta) {
      const Expr difference = Expr(x) - Expr(target);
      const Expr slope = beta == 0 ? gradient::sign(difference) : clamp(difference, -beta, beta) / beta;
      return as_dtype_of(x, slope * incoming(grad, x, target, reduction));
    })
    .composite();

// Logarithms are at least -100, so that the loss of a confident mistake is finite.
Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, const MaybeTensor& weight, int64_t reduction) {
  check(x.sizes() == target.sizes(), "Using a target size (", target.sizes(), ") that is different to the input size (",
        x.sizes(), ") is deprecated. Please ensure they have the same size.");
  const Expr in = x, y = target;
  if (!x.is_meta() && x.numel() > 0) {
    const Expr low = unary("aten::min", in), high = unary("aten::max", in);
    check(low.tensor().item_double() >= 0 && high.tensor().item_double() <= 1,
          "all elements of input should be between 0 and 1");
  }
  Expr losses = (y - 1.0) * clamp_min(unary("aten::log1p", -in), -100) - y * clamp_min(gradient::log(in), -100);
  if (weight) losses = losses * Expr(*weight);
  check_weighted(losses.tensor(), x.sizes());
  return reduce_loss(as_dtype_of(x, losses), reduction);
}
OP("aten::binary_cross_entropy_backward")
    .impl([](const Tensor& grad, const Tensor& x, const Tensor& target, const MaybeTensor& weight, int64_t reduction) {
      const Expr in = x, y = target;
      Expr g = incoming(grad, x, target, reduction);
      if (weight) g = g * Expr(*weight);
      return as_dtype_of(x, g * (in - y) / clamp_min(from_one(in) * in, 1e-12));
    })
    .composite();
std::vector<Tensor> binary_cross_entropy_gradient(const ops::GradArgs& args) {
  std::vector<Tensor> out(args.inputs.size());
  const Tensor &x = args.inputs[0].to_tensor(), &target = args.inputs[1].to_tensor();
  const Expr in = x;
  Expr g = incoming(args.grad_outputs[0], x, target, args.inputs[3].to_int());
  if (args.inputs[2].is_tensor()) g = g * Expr(args.inputs[2]);
  if (args.needs(0)) {
    const Tensor slope = ops::binary_cross_entropy_backward(
        args.grad_outputs[0], x, target, ops::unbox<std::optional<Tensor>>(args.inputs[2]), args.inputs[3].to_int());
    out[0] = gradient::fit_gradient(slope, x);
  }
  if (args.needs(1) && is_floating(target.dtype())) {
    const Expr slope = clamp_min(unary("aten::log1p", -in), -100) - clamp_min(gradient::log(in), -100);
    out[1] = gradient::fit_gradient(g * slope, target);
  }
  return out;
}
OP("aten::binary_cross_entropy")
    .impl(binary_cross_entropy)
    .gradient(binary_cross_entropy_gradient)
    .saves("self, target, weight")
    .kind(ops::OpKind::kComposite);

// (1 - y) x - (1 + (pos_weight - 1) y) log sigmoid(x)
Tensor cross_entropy_of_logits(const Tensor& x, const Tensor& target, const MaybeTensor& weight,
                               const MaybeTensor& pos_weight, int64_t reduction) {
  const Expr in = x, y = target;
  Expr losses;
  if (pos_weight) {
    losses = from_one(y) * in - ((Expr(*pos_weight) - 1) * y + 1.0) * log_sigmoid(in);
  } else {
    losses = from_one(y) * in - log_sigmoid(in);
  }
  if (weight) losses = losses * Expr(*weight);
  check_weighted(losses.tensor(), target.sizes());
  return reduce_loss(as_dtype_of(target, losses), reduction);
}
std::vector<Tensor> cross_entropy_of_logits_gradient(const ops::GradArgs& args) {
  std::vector<Tensor> out(args.inputs.size());
  const Tensor &x = args.inputs[0].to_tensor(), &target = args.inputs[1].to_tensor();
  const Expr in = x, y = target;
  Expr g = args.grad_outputs[0];
  const bool has_pos_weight = args.inputs[3].is_tensor();
  if (args.inputs[4].to_int() == kLossMean) g = g / static_cast<double>(target.numel());
  if (args.inputs[2].is_tensor()) g = g * Expr(args.inputs[2]);
  if (args.needs(0)) {
    Expr slope = gradient::sigmoid(in) - y;
    if (has_pos_weight) {
      const Expr positive = Expr(args.inputs[3]) * y;
      slope = (positive + from_one(y)) * gradient::sigmoid(in) - positive;
    }
    out[0] = gradient::fit_gradient(slope * g, x);
  }
  if (args.needs(1) && is_floating(target.dtype())) {
    const Expr slope = has_pos_weight ? log_sigmoid(-in) - Expr(args.inputs[3]) * log_sigmoid(in) : -in;
    out[1] = gradient::fit_gradient(slope * g, target);
  }
  return out;
}
OP("aten::binary_cross_entropy_with_logits")
    .impl(cross_entropy_of_logits)
    .gradient(cross_entropy_of_logits_gradient)
    .saves("self, target, weight, pos_weight")
    .kind(ops::OpKind::kComposite);

OP("aten::kl_div")
    .impl([](const Tensor& x, const Tensor& target, int64_t reduction, bool log_target) {
      const Expr in = x, y = target;
      const Expr losses = log_target ? gradient::exp(y) * (y - in) : Expr(ops::xlogy(target, target)) - y * in;
      return reduce_loss(losses.tensor(), reduction);
    })
    .composite();

OP("aten::poisson_nll_loss")
    .impl([](const Tensor& x, const Tensor& target, bool log_input, bool full, double eps, int64_t reduction) {
      const Expr in = x, y = target;
      Expr losses = log_input ? gradient::exp(in) - y * in : in - y * gradient::log(in + eps);
      if (full) {  // the logarithm of the target's factorial, by Stirling's formula
        const Expr safe = gradient::where(y > 1, y, 2.0);
        const Expr stirling = y * gradient::log(safe) - y + gradient::log(safe * (2 * M_PI)) * 0.5;
        losses = losses + gradient::where(y > 1, stirling, 0.0);
      }
      return reduce_loss(losses.tensor(), reduction);
    })
    .composite();

OP("aten::soft_margin_loss_backward")
    .impl([](const Tensor& grad, const Tensor& x, const Tensor& target, int64_t reduction) {
      const Expr y = target;
      return as_dtype_of(x, -y * gradient::sigmoid(-(y * Expr(x))) * incoming(grad, x, target, reduction));
    })
    .composite();
// log(1 + exp(-y x))
OP("aten::soft_margin_loss")
    .impl([](const Tensor& x, const Tensor& target, int64_t reduction) {
      return reduce_loss(as_dtype_of(x, -log_sigmoid(Expr(x) * Expr(target))), reduction);
    })
    .composite();

}  // namespace
}  // namespace tensord::kernels
