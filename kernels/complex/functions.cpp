// Functions of one complex number.
#include "core/ops/complex.h"
#include "kernels/complex/elementwise.h"
#include "kernels/expr/compose.h"
#include "ops/complex.h"
#include "ops/factory.h"
#include "ops/pointwise.h"

namespace tensord::kernels {
namespace {

using complex_loops::map_one;
using compose::Expr;
using ops::GradArgs;

// Holomorphic functions: the gradient formula for real numbers also holds here.
#define HOLOMORPHIC(NAME) IMPL("aten::" #NAME, ops::kComplexCPU, map_one<ComplexFormula::NAME>).holomorphic()
HOLOMORPHIC(neg);
HOLOMORPHIC(square);
HOLOMORPHIC(reciprocal);
HOLOMORPHIC(exp);
HOLOMORPHIC(exp2);
HOLOMORPHIC(log);
HOLOMORPHIC(log2);
HOLOMORPHIC(log10);
HOLOMORPHIC(sqrt);
HOLOMORPHIC(rsqrt);
HOLOMORPHIC(sin);
HOLOMORPHIC(cos);
HOLOMORPHIC(tan);
HOLOMORPHIC(sinh);
HOLOMORPHIC(cosh);
HOLOMORPHIC(asin);
HOLOMORPHIC(acos);
HOLOMORPHIC(atan);
HOLOMORPHIC(asinh);
HOLOMORPHIC(atanh);
#undef HOLOMORPHIC

Tensor conj(const Tensor& x) { return ops::conj(x); }

// Functions whose real formula is an operator of its own, or is right on half of the plane only.
template <class F>
auto of_result(F slope) {
  return [slope](const GradArgs& args) {
    std::vector<Tensor> out(args.inputs.size());
    if (args.needs(0))
      out[0] = (Expr(args.grad_outputs[0]) * Expr(conj(slope(args.outputs[0].to_tensor()).tensor()))).tensor();
    return out;
  };
}
template <class F>
auto of_argument(F slope) {
  return [slope](const GradArgs& args) {
    std::vector<Tensor> out(args.inputs.size());
    if (args.needs(0))
      out[0] = (Expr(args.grad_outputs[0]) * Expr(conj(slope(args.inputs[0].to_tensor()).tensor()))).tensor();
    return out;
  };
}
IMPL("aten::tanh", ops::kComplexCPU, map_one<ComplexFormula::tanh>).gradient(of_result([](const Expr& y) {
  return -(y * y) + 1;
}));
IMPL("aten::sigmoid", ops::kComplexCPU, map_one<ComplexFormula::sigmoid>).gradient(of_result([](const Expr& y) {
  return y * (-y + 1);
}));
IMPL("aten::acosh", ops::kComplexCPU, map_one<ComplexFormula::acosh>).gradient(of_argument([](const Expr& z) {
  return gradient::rsqrt(z + 1) * gradient::rsqrt(z - 1);
}));
IMPL("aten::silu", ops::kComplexComposite, [](const Tensor& x) { return (Expr(x) * gradient::sigmoid(x)).tensor(); });
IMPL("aten::positive", ops::kComplexComposite, [](const Tensor& x) { return x; });

// sin(πz) / (πz)
IMPL("aten::sinc", ops::kComplexComposite, [](const Tensor& x) {
  const Tensor is_zero = ops::eq(x, 0), ones = ops::ones_like(x);
  const Expr angle = Expr(ops::where(is_zero, ones, x)) * 3.14159265358979323846;
  return ops::where(is_zero, ones, (gradient::sin(angle) / angle).tensor());
});

// --- size and direction

// The gradient at 0 is 0, as in PyTorch.
IMPL("aten::abs", ops::kComplexCPU, map_one<ComplexFormula::abs>).gradient([](const GradArgs& args) {
  std::vector<Tensor> out(args.inputs.size());
  if (args.needs(0)) out[0] = (Expr(args.grad_outputs[0]) * Expr(ops::sgn(args.inputs[0].to_tensor()))).tensor();
  return out;
});
IMPL("aten::sgn", ops::kComplexComposite, [](const Tensor& x) {
  const Tensor size = ops::abs(x), is_zero = ops::eq(size, 0);
  const Tensor turned = ops::div(x, ops::masked_fill(size, is_zero, 1));
  return ops::masked_fill(turned, is_zero, 0);
});
IMPL("aten::angle", ops::kComplexComposite, [](const Tensor& x) { return ops::atan2(ops::imag(x), ops::real(x)); });

#define QUESTION(NAME) IMPL("aten::" #NAME, ops::kComplexCPU, map_one<ComplexFormula::NAME>)
QUESTION(isnan);
QUESTION(isinf);
QUESTION(isfinite);
QUESTION(isreal);
#undef QUESTION

}  // namespace
}  // namespace tensord::kernels
