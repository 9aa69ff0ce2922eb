#include "kernels/norm/norm_gradient.h"

#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using gradient::Expr;

// Adds the two if both are defined.
void join(std::optional<Expr>& sum, const Expr& term) { sum = sum ? *sum + term : term; }
Tensor tensor_of(const std::optional<Expr>& sum) { return sum ? sum->tensor() : Tensor(); }

}  // namespace

// P v = rstd (v - mean(v) - x^ mean(v x^)) is symmetric, and is the derivative of x^ too. With a, b, c the
// gradients that come in, q = P a, d = P h, and n elements a mean:
//   dg = weight q + b x^ + c        dweight = sum of g q
//   dx = P(b g) - rstd (x^ mean(a d) + q mean(h x^) + d mean(a x^))
NormBackwardGradients differentiate(const NormBackward& backward) {
  const auto mean = [&](const Expr& v) { return Expr(ops::mean(v.tensor(), backward.dims, true)); };
  const Expr g = backward.g, x = backward.x;
  const Expr centered = x - (backward.mean ? Expr(*backward.mean) : mean(x));
  const Expr rstd = backward.rstd ? Expr(*backward.rstd) : gradient::rsqrt(mean(centered * centered) + backward.eps);
  const Expr normal = centered * rstd;
  const auto project = [&](const Expr& v) { return rstd * (v - mean(v) - normal * mean(v * normal)); };
  std::optional<Expr> to_g, to_x, to_weight;
  if (backward.to_dx.defined()) {
    const Expr a = backward.to_dx, h = backward.weight ? g * Expr(*backward.weight) : g;
    const Expr q = project(a), d = project(h);
    join(to_g, backward.weight ? q * Expr(*backward.weight) : q);
    join(to_x, -(rstd * (normal * mean(a * d) + q * mean(h * normal) + d * mean(a * normal))));
    if (backward.weight) join(to_weight, g * q);
  }
  if (backward.to_dweight.defined()) {
    const Expr b = backward.to_dweight;
    join(to_g, normal * b);
    join(to_x, project(g * b));
  }
  if (backward.to_dbias.defined()) {
    join(to_g, Expr(ops::expand(backward.to_dbias, backward.x.sizes())));
  }
  return {tensor_of(to_g), tensor_of(to_x), tensor_of(to_weight)};
}

std::vector<ops::Value> norm_gradients(const ops::GradArgs& args, std::array<size_t, 3> asked, const char* backward,
                                       std::vector<ops::Value> arguments) {
  std::vector<ops::Value> gradients(args.inputs.size());
  if (!args.grad_outputs[0].defined()) return gradients;
  const ops::List mask = ops::make_list(ops::bool_type());
  for (size_t position : asked) {
    mask->items.emplace_back(args.inputs[position].is_tensor() && args.needs(position));
  }
  arguments.emplace_back(mask);
  const std::vector<ops::Value> found = ops::run(ops::get_op(backward), arguments);
  for (size_t i = 0; i < asked.size(); ++i) {
    if (mask->items[i].to_bool()) gradients[asked[i]] = found[i];
  }
  return gradients;
}

}  // namespace tensord::kernels
