// Schemas and gradients of special functions (special.def and a few lines of pointwise/math.def). Where PyTorch gives
// no gradient it takes the result for a constant (Bessel functions, Airy's, polynomials), or refuses (zeta's and the
// incomplete gamma functions' first argument, nextafter).
#include "kernels/expr/expr.h"
#include "kernels/pointwise/pointwise.h"
#include "ops/factory.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using gradient::Expr;
using gradient::GradientFormula;
using ops::GradArgs;
using ops::Scalar;

// The names in a gradient formula: g, y, a, b.
using Given = std::span<const Expr>;

constexpr GradientFormula kNoGradient = nullptr;
// For operators with a gradient for one argument only.
Expr refused_gradient(Given) { return {}; }

std::vector<Tensor> evaluate_gradients(const GradArgs& args, const char* op, GradientFormula of_a,
                                       GradientFormula of_b) {
  std::vector<Tensor> gradients(args.inputs.size());
  const GradientFormula formulas[] = {of_a, of_b};
  const Expr b = args.inputs.size() > 1 ? Expr(args.inputs[1]) : Expr();
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    if (!args.inputs[i].is_tensor() || !args.needs(i)) continue;
    if (formulas[i] == refused_gradient && is_floating(args.inputs[i].to_tensor().dtype())) {
      fail(ErrorCode::kUnimplemented, "the derivative of ", op, " for argument ", i, " is not implemented");
    }
    gradient::put(gradients, args, i, formulas[i], {args.grad_outputs[0], args.outputs[0], args.inputs[0], b});
  }
  return gradients;
}

void finish(ops::OpBuilder& builder, const char* op, GradientFormula of_a, GradientFormula of_b, const char* saves) {
  builder.pointwise().keeps_layout();
  if (saves == nullptr) return;
  builder.saves(saves).gradient([=](const GradArgs& args) { return evaluate_gradients(args, op, of_a, of_b); });
}

enum Form { kPlain, kConstant };  // no other variants than out=

void add_unary(const char* op, Formula formula, Form form, GradientFormula gradient = kNoGradient,
               const char* saves = nullptr) {
  const auto dtype = [op](const Tensor& a) { return compute_dtype(op, TypeClass::kFloat, std::array{Operand(a)}); };
  ops::OpBuilder builder(op, __FILE__, __LINE__);
  builder.infer([=](const Tensor& a) { return infer_pointwise(std::array{Operand(a)}, dtype(a)); });
  finish(builder, op, gradient, kNoGradient, saves);
  if (form == kConstant) builder.constant_result();
  add_pointwise_kernel(op, [=](const Tensor& a) { return PointwiseCall(formula, dtype(a), std::array{Operand(a)}); });
}

struct Binary {
  Formula formula;
  TypeClass type_class;
  Form form = kPlain;
  GradientFormula of_a = kNoGradient, of_b = kNoGradient;
  const char* saves = nullptr;
};
template <class A = const Tensor&, class B = const Tensor&>
void add_binary(const char* op, const Binary& binary) {
  ops::OpBuilder builder(op, __FILE__, __LINE__);
  const auto dtype = [op, type_class = binary.type_class](Operands operands) {
    return compute_dtype(op, type_class, operands);
  };
  builder.infer([dtype](A a, B b) {
    const std::array operands{Operand(a), Operand(b)};
    return infer_pointwise(operands, dtype(operands));
  });
  finish(builder, op, binary.of_a, binary.of_b, binary.saves);
  if (binary.form == kConstant) builder.constant_result();
  add_pointwise_kernel(op, [dtype, formula = binary.formula](A a, B b) {
    const std::array operands{Operand(a), Operand(b)};
    return PointwiseCall(formula, dtype(operands), operands);
  });
}
// The three overloads of a polynomial of degree n at x.
void add_polynomial(const std::string& name, Formula formula) {
  const Binary binary{formula, TypeClass::kFloat, kConstant};
  const auto overload = [&name](const char* of) { return keep_text(concat("aten::special_", name, of)); };
  add_binary<>(overload(""), binary);
  add_binary<Scalar>(overload(".x_scalar"), binary);
  add_binary<const Tensor&, Scalar>(overload(".n_scalar"), binary);
}
// Tensors, a number first, a number last.
void add_three(const std::string& name, const Binary& binary) {
  const auto overload = [&name](const char* of) { return keep_text(concat("aten::", name, of)); };
  add_binary<>(overload(""), binary);
  add_binary<Scalar>(overload(".self_scalar"), binary);
  add_binary<const Tensor&, Scalar>(overload(".other_scalar"), binary);
}

// Gradients.

// The quotient is undefined at 0; its limit is one half, which PyTorch also gives for NaN.
Expr i1_gradient(Given x) {
  const Expr &g = x[0], &y = x[1], &a = x[2], is_apart = gradient::abs(a) > 0, safe = gradient::where(is_apart, a, 1.0);
  return g * gradient::where(is_apart, gradient::i0(safe) - y / safe, 0.5);
}
Expr i1e_gradient(Given x) {
  const Expr &g = x[0], &y = x[1], &a = x[2], is_apart = gradient::abs(a) > 0, safe = gradient::where(is_apart, a, 1.0);
  return g * gradient::where(is_apart, gradient::special_i0e(safe) - y * (gradient::sign(safe) + 1 / safe), 0.5);
}
Expr sinc_gradient(Given x) {
  constexpr double kPi = 3.14159265358979323846;
  const Expr &g = x[0], &a = x[2], angle = a * kPi, divisor = a * a * kPi;
  const Expr slope = g * ((angle * gradient::cos(angle) - gradient::sin(angle)) / divisor);
  return gradient::where(divisor == 0, 0.0, slope);
}
Expr xlog1py_gradient(Given x) {
  const Expr &g = x[0], &a = x[2], &b = x[3], slope = gradient::xlog1py(g, b);
  return gradient::where(a == 0, gradient::where(b <= -1, 0.0, slope), slope);
}
// d P(a, x) / dx, the density of the gamma distribution.
Expr igamma_density(Given x) {
  const Expr &a = x[2], &b = x[3];
  return x[0] * gradient::exp((a - 1) * gradient::log(b) - b - gradient::lgamma(a));
}
Expr igammac_gradient(Given x) { return -igamma_density(x); }

bool register_bessel() {
  add_unary(
      "aten::i0", Formula::i0, kPlain, [](Given x) { return x[0] * gradient::special_i1(x[2]); }, "self");
  add_unary(
      "aten::special_i0e", Formula::i0e, kPlain,
      [](Given x) { return x[0] * (gradient::special_i1e(x[2]) - gradient::sign(x[2]) * x[1]); }, "self, result");
  add_unary("aten::special_i1", Formula::i1, kPlain, i1_gradient, "self, result");
  add_unary("aten::special_i1e", Formula::i1e, kPlain, i1e_gradient, "self, result");
  add_unary("aten::special_bessel_j0", Formula::bessel_j0, kConstant);
  add_unary("aten::special_bessel_j1", Formula::bessel_j1, kConstant);
  add_unary("aten::special_bessel_y0", Formula::bessel_y0, kConstant);
  add_unary("aten::special_bessel_y1", Formula::bessel_y1, kConstant);
  add_unary("aten::special_modified_bessel_i0", Formula::i0, kConstant);
  add_unary("aten::special_modified_bessel_i1", Formula::i1, kConstant);
  add_unary("aten::special_modified_bessel_k0", Formula::bessel_k0, kConstant);
  add_unary("aten::special_modified_bessel_k1", Formula::bessel_k1, kConstant);
  add_unary("aten::special_scaled_modified_bessel_k0", Formula::bessel_k0e, kConstant);
  add_unary("aten::special_scaled_modified_bessel_k1", Formula::bessel_k1e, kConstant);
  add_unary("aten::special_spherical_bessel_j0", Formula::spherical_bessel_j0, kConstant);
  add_unary("aten::special_airy_ai", Formula::airy_ai, kConstant);
  return true;
}

bool register_polynomials() {
  add_polynomial("chebyshev_polynomial_t", Formula::chebyshev_t);
  add_polynomial("chebyshev_polynomial_u", Formula::chebyshev_u);
  add_polynomial("chebyshev_polynomial_v", Formula::chebyshev_v);
  add_polynomial("chebyshev_polynomial_w", Formula::chebyshev_w);
  add_polynomial("shifted_chebyshev_polynomial_t", Formula::shifted_chebyshev_t);
  add_polynomial("shifted_chebyshev_polynomial_u", Formula::shifted_chebyshev_u);
  add_polynomial("shifted_chebyshev_polynomial_v", Formula::shifted_chebyshev_v);
  add_polynomial("shifted_chebyshev_polynomial_w", Formula::shifted_chebyshev_w);
  add_polynomial("hermite_polynomial_h", Formula::hermite_h);
  add_polynomial("hermite_polynomial_he", Formula::hermite_he);
  add_polynomial("laguerre_polynomial_l", Formula::laguerre_l);
  add_polynomial("legendre_polynomial_p", Formula::legendre_p);
  return true;
}

bool register_normal() {
  add_unary(
      "aten::special_ndtr", Formula::ndtr, kPlain,
      [](Given x) { return x[0] * gradient::exp(x[2] * x[2] * -0.5) * 0.39894228040143267794; }, "self");
  add_unary(
      "aten::special_ndtri", Formula::ndtri, kPlain,
      [](Given x) { return x[0] * gradient::exp(x[1] * x[1] * 0.5) * 2.50662827463100050242; }, "result");
  add_unary(
      "aten::special_log_ndtr", Formula::log_ndtr, kPlain,
      [](Given x) { return x[0] / gradient::special_erfcx(x[2] * -0.70710678118654752440) * 0.79788456080286535588; },
      "self");
  add_unary(
      "aten::special_erfcx", Formula::erfcx, kPlain,
      [](Given x) { return x[0] * (x[2] * x[1] * 2 - 1.12837916709551257390); }, "self, result");
  add_unary(
      "aten::special_entr", Formula::entr, kPlain, [](Given x) { return -(x[0] * (gradient::log(x[2]) + 1)); }, "self");
  add_unary("aten::sinc", Formula::sinc, kPlain, sinc_gradient, "self");
  return true;
}

bool register_binary() {
  add_three("special_xlog1py", {Formula::xlog1py, TypeClass::kFloat, kPlain, xlog1py_gradient,
                                [](Given x) { return x[0] * x[2] / (x[3] + 1); }, "self, other"});
  add_three("special_zeta",
            {Formula::zeta, TypeClass::kFloat, kPlain, refused_gradient,
             [](Given x) { return x[0] * -x[2] * gradient::special_zeta(x[2] + 1, x[3]); }, "self, other"});
  add_binary<>("aten::igamma",
               {Formula::igamma, TypeClass::kFloatOnly, kPlain, refused_gradient, igamma_density, "self, other"});
  add_binary<>("aten::igammac",
               {Formula::igammac, TypeClass::kFloatOnly, kPlain, refused_gradient, igammac_gradient, "self, other"});
  add_binary<>("aten::logaddexp", {Formula::logaddexp, TypeClass::kFloatOnly, kPlain,
                                   [](Given x) { return x[0] / (gradient::exp(x[3] - x[2]) + 1); },
                                   [](Given x) { return x[0] / (gradient::exp(x[2] - x[3]) + 1); }, "self, other"});
  add_binary<>("aten::logaddexp2", {Formula::logaddexp2, TypeClass::kFloatOnly, kPlain,
                                    [](Given x) { return x[0] / (gradient::pow(2, x[3] - x[2]) + 1); },
                                    [](Given x) { return x[0] / (gradient::pow(2, x[2] - x[3]) + 1); }, "self, other"});
  add_binary<>("aten::gcd", {Formula::gcd, TypeClass::kIntegerNoBool, kPlain});
  add_binary<>("aten::lcm", {Formula::lcm, TypeClass::kIntegerNoBool, kPlain});
  return true;
}

// The next number depends on the dtype: bfloat16, which loops compute in float, has a formula of its own.
DType nextafter_dtype(Operands operands) {
  const DType dtype = compute_dtype("nextafter", TypeClass::kFloatOnly, operands);
  if (dtype == DType::kFloat16) fail_dtype("nextafter", dtype);
  return dtype;
}
OP("aten::nextafter")
    .infer([](const Tensor& a, const Tensor& b) {
      const std::array operands{Operand(a), Operand(b)};
      return infer_pointwise(operands, nextafter_dtype(operands));
    })
    .pointwise()
    .keeps_layout();
bool register_nextafter() {
  add_pointwise_kernel("aten::nextafter", [](const Tensor& a, const Tensor& b) {
    const std::array operands{Operand(a), Operand(b)};
    const DType dtype = nextafter_dtype(operands);
    return PointwiseCall(dtype == DType::kBFloat16 ? Formula::nextafter_bfloat16 : Formula::nextafter, dtype, operands);
  });
  return true;
}

[[maybe_unused]] const bool special_registered =
    register_bessel() && register_polynomials() && register_normal() && register_binary() && register_nextafter();

// The logarithm of the multivariate gamma function: the sum of lgamma(x - j / 2) for j below p, and a constant.
Tensor mvlgamma(const Tensor& x, int64_t p) {
  check(x.dtype() != DType::kBool, "The input tensor may not be a boolean tensor.");
  check(p >= 1, "p has to be greater than or equal to 1");
  const DType dtype = is_floating(x.dtype()) ? x.dtype() : DType::kFloat32;
  const auto count = static_cast<double>(p);
  const Tensor shifts = ops::arange(0.5 - 0.5 * count, 0.5, 0.5, {.dtype = dtype, .device = x.device()});
  const Tensor arguments = ops::add(ops::unsqueeze(x, int64_t{-1}), shifts);
  const Tensor sum = ops::sum(ops::lgamma(arguments), Dims{-1});
  return ops::add(sum, count * (count - 1) * 0.28618247146235004354);  // log(pi) / 4
}
OP("aten::mvlgamma").impl(mvlgamma).composite();

}  // namespace
}  // namespace tensord::kernels
