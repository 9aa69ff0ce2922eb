// Functions of one complex number.
#include <cmath>

#include "core/ops/complex.h"
#include "kernels/complex/elementwise.h"
#include "kernels/expr/compose.h"
#include "ops/complex.h"
#include "ops/factory.h"
#include "ops/pointwise.h"

namespace tensord::kernels {
namespace {

using complex_loops::map_one;
using complex_loops::over;
using complex_loops::Real;
using complex_loops::times;
using compose::Expr;
using ops::GradArgs;

// Holomorphic functions: the gradient formula for real numbers also holds here.
#define HOLOMORPHIC(NAME, EXPRESSION)                                                                             \
  IMPL("aten::" NAME, ops::kComplexCPU,                                                                           \
                                                                                                                  \
       [](const Tensor& x) { return map_one(x, []<class T>([[maybe_unused]] T z) -> T { return EXPRESSION; }); }) \
      .holomorphic()
HOLOMORPHIC("neg", -z);
HOLOMORPHIC("square", times(z, z));
HOLOMORPHIC("reciprocal", over(T(1), z));
HOLOMORPHIC("exp", std::exp(z));
HOLOMORPHIC("exp2", std::exp(times(z, T(Real<T>(0.69314718055994530942)))));
HOLOMORPHIC("log", std::log(z));
HOLOMORPHIC("log2", std::log(z) / Real<T>(0.69314718055994530942));
HOLOMORPHIC("log10", std::log10(z));
HOLOMORPHIC("sqrt", std::sqrt(z));
HOLOMORPHIC("rsqrt", over(T(1), std::sqrt(z)));
HOLOMORPHIC("sin", std::sin(z));
HOLOMORPHIC("cos", std::cos(z));
HOLOMORPHIC("tan", std::tan(z));
HOLOMORPHIC("sinh", std::sinh(z));
HOLOMORPHIC("cosh", std::cosh(z));
HOLOMORPHIC("asin", std::asin(z));
HOLOMORPHIC("acos", std::acos(z));
HOLOMORPHIC("atan", std::atan(z));
HOLOMORPHIC("asinh", std::asinh(z));
HOLOMORPHIC("atanh", std::atanh(z));
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
IMPL("aten::tanh", ops::kComplexCPU, [](const Tensor& x) {
  return map_one(x, []<class T>(T z) -> T { return std::tanh(z); });
}).gradient(of_result([](const Expr& y) { return -(y * y) + 1; }));
IMPL("aten::sigmoid", ops::kComplexCPU, [](const Tensor& x) {
  return map_one(x, []<class T>(T z) -> T { return over(T(1), T(1) + std::exp(-z)); });
}).gradient(of_result([](const Expr& y) { return y * (-y + 1); }));
IMPL("aten::acosh", ops::kComplexCPU, [](const Tensor& x) {
  return map_one(x, []<class T>(T z) -> T { return std::acosh(z); });
}).gradient(of_argument([](const Expr& z) { return gradient::rsqrt(z + 1) * gradient::rsqrt(z - 1); }));
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
IMPL("aten::abs", ops::kComplexCPU, [](const Tensor& x) {
  return map_one(x, []<class T>(T z) { return std::abs(z); });
}).gradient([](const GradArgs& args) {
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

#define QUESTION(NAME, EXPRESSION)      \
  IMPL("aten::" NAME, ops::kComplexCPU, \
       [](const Tensor& x) { return map_one(x, []<class T>(T z) -> bool { return EXPRESSION; }); })
QUESTION("isnan", std::isnan(z.real()) || std::isnan(z.imag()));
QUESTION("isinf", std::isinf(z.real()) || std::isinf(z.imag()));
QUESTION("isfinite", std::isfinite(z.real()) && std::isfinite(z.imag()));
QUESTION("isreal", z.imag() == 0);
#undef QUESTION

}  // namespace
}  // namespace tensord::kernels
