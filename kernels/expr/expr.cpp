#include "kernels/expr/expr.h"

#include <cmath>

#include "core/tensor/complex.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels::gradient {
namespace {

using ops::Value;

thread_local Recorder* current_recorder = nullptr;
constinit FusedEvaluation fused_evaluation = nullptr;

Expr run(const char* name, std::vector<Value> arguments) {
  const ops::Op& op = ops::get_op(name);
  arguments = ops::bind(op, std::move(arguments));
  if (current_recorder) return current_recorder->add(op, std::move(arguments));
  return Expr(ops::run(op, arguments).at(0));
}

// The overload for the operands that are tensors. A number on the left becomes a 0-d tensor.
Expr binary(const char* tensor_op, const char* scalar_op, const Expr& a, const Expr& b) {
  if (b.is_tensor()) {
    if (a.is_tensor()) return run(tensor_op, {a.value, b.value});
    return run(tensor_op, {Value(Tensor::scalar(a.number(), real_dtype(b.tensor().dtype()))), b.value});
  }
  return run(scalar_op, {a.value, b.value});
}

bool is_continuous(const Tensor& x) { return is_floating(x.dtype()) || is_complex(x.dtype()); }

bool numbers(const Expr& a, const Expr& b) { return !a.is_tensor() && !b.is_tensor(); }

}  // namespace

Expr operator+(const Expr& a, const Expr& b) {
  if (numbers(a, b)) return a.number() + b.number();
  return a.is_tensor() ? binary("aten::add.Tensor", "aten::add.Scalar", a, b) : b + a;
}
Expr operator-(const Expr& a, const Expr& b) {
  if (numbers(a, b)) return a.number() - b.number();
  return a.is_tensor() ? binary("aten::sub.Tensor", "aten::sub.Scalar", a, b) : -b + a;
}
Expr operator*(const Expr& a, const Expr& b) {
  if (numbers(a, b)) return a.number() * b.number();
  if (a.is_tensor() && !b.is_tensor() && !b.value.is_complex() && b.number() == 1 && is_continuous(a.tensor()))
    return a;
  return a.is_tensor() ? binary("aten::mul.Tensor", "aten::mul.Scalar", a, b) : b * a;
}
Expr operator/(const Expr& a, const Expr& b) {
  if (numbers(a, b)) return a.number() / b.number();
  return a.is_tensor() ? binary("aten::div.Tensor", "aten::div.Scalar", a, b) : run("aten::reciprocal", {b.value}) * a;
}
Expr operator-(const Expr& a) {
  if (!a.is_tensor()) return -a.number();
  return run("aten::neg", {a.value});
}

#define TENSORD_EXPR_COMPARE(SYMBOL, NAME, MIRRORED)                                 \
  Expr operator SYMBOL(const Expr& a, const Expr& b) {                               \
    if (numbers(a, b)) return static_cast<int>(a.number() SYMBOL b.number());        \
    if (!a.is_tensor()) return run("aten::" MIRRORED ".Scalar", {b.value, a.value}); \
    return binary("aten::" NAME ".Tensor", "aten::" NAME ".Scalar", a, b);           \
  }
TENSORD_EXPR_COMPARE(>, "gt", "lt")
TENSORD_EXPR_COMPARE(>=, "ge", "le")
TENSORD_EXPR_COMPARE(<, "lt", "gt")
TENSORD_EXPR_COMPARE(<=, "le", "ge")
TENSORD_EXPR_COMPARE(==, "eq", "eq")
TENSORD_EXPR_COMPARE(!=, "ne", "ne")
#undef TENSORD_EXPR_COMPARE

Expr where(const Expr& condition, const Expr& a, const Expr& b) {
  if (!condition.is_tensor()) return condition.number() != 0 ? a : b;
  if (a.is_tensor() && b.is_tensor()) return run("aten::where.self", {condition.value, a.value, b.value});
  if (a.is_tensor()) return run("aten::where.ScalarOther", {condition.value, a.value, b.value});
  if (b.is_tensor()) return run("aten::where.ScalarSelf", {condition.value, a.value, b.value});
  // Ints become floats, since a choice between two ints would give an int64 tensor.
  return run("aten::where.Scalar", {condition.value, Value(a.number()), Value(b.number())});
}

Expr floor_of_div(const Expr& a, const Expr& b) {
  const Value mode("floor");
  return b.is_tensor() ? run("aten::div.Tensor_mode", {a.value, b.value, mode})
                       : run("aten::div.Scalar_mode", {a.value, b.value, mode});
}
Expr trunc_of_div(const Expr& a, const Expr& b) {
  const Value mode("trunc");
  return b.is_tensor() ? run("aten::div.Tensor_mode", {a.value, b.value, mode})
                       : run("aten::div.Scalar_mode", {a.value, b.value, mode});
}
Expr pow(const Expr& a, const Expr& b) {
  if (numbers(a, b)) return std::pow(a.number(), b.number());
  if (!a.is_tensor()) return run("aten::pow.Scalar", {a.value, b.value});
  return binary("aten::pow.Tensor_Tensor", "aten::pow.Tensor_Scalar", a, b);
}

Expr xlogy(const Expr& a, const Expr& b) {
  if (!a.is_tensor()) return run("aten::xlogy.Scalar_Self", {a.value, b.value});
  return binary("aten::xlogy.Tensor", "aten::xlogy.Scalar_Other", a, b);
}
Expr xlog1py(const Expr& a, const Expr& b) {
  if (!a.is_tensor()) return run("aten::special_xlog1py.self_scalar", {a.value, b.value});
  return binary("aten::special_xlog1py", "aten::special_xlog1py.other_scalar", a, b);
}
Expr special_zeta(const Expr& a, const Expr& b) {
  if (!a.is_tensor()) return run("aten::special_zeta.self_scalar", {a.value, b.value});
  return binary("aten::special_zeta", "aten::special_zeta.other_scalar", a, b);
}
Expr polygamma(int order, const Expr& a) { return run("aten::polygamma", {order, a.value}); }
Expr zeros(const Expr& like) { return run("aten::zeros_like", {like.value}); }
Expr threshold_backward(const Expr& g, const Expr& x, const Expr& threshold) {
  return run("aten::threshold_backward", {g.value, x.value, threshold.value});
}
Expr sigmoid_backward(const Expr& g, const Expr& y) { return run("aten::sigmoid_backward", {g.value, y.value}); }
Expr tanh_backward(const Expr& g, const Expr& y) { return run("aten::tanh_backward", {g.value, y.value}); }
Expr silu_backward(const Expr& g, const Expr& x) { return run("aten::silu_backward", {g.value, x.value}); }
Expr activation_backward(const char* op, const Expr& g, const Expr& x, std::initializer_list<Expr> numbers) {
  std::vector<Value> arguments{g.value, x.value};
  for (const Expr& number : numbers) arguments.push_back(number.value);
  return run(op, std::move(arguments));
}
Expr leaky_relu_backward(const Expr& g, const Expr& x, const Expr& negative_slope) {
  return run("aten::leaky_relu_backward", {g.value, x.value, negative_slope.value, false});
}
Expr elu_backward(const Expr& g, const Expr& x, const Expr& alpha, const Expr& scale, const Expr& input_scale) {
  return run("aten::elu_backward", {g.value, alpha.value, scale.value, input_scale.value, false, x.value});
}

#define TENSORD_EXPR_UNARY(NAME)                                                            \
  Expr NAME(const Expr& a) {                                                                \
    if (a.is_tensor()) return run("aten::" #NAME, {a.value});                               \
    return run("aten::" #NAME, {Value(Tensor::scalar(a.number()))}).tensor().item_double(); \
  }
TENSORD_EXPR_UNARIES(TENSORD_EXPR_UNARY)
#undef TENSORD_EXPR_UNARY

Tensor fit_gradient(const Expr& gradient, const Tensor& input) {
  Tensor result = gradient.tensor();
  const auto extra = result.ndim() - input.ndim();
  Dims repeated;
  for (int64_t d = 0; d < result.ndim(); ++d) {
    if (d < extra || (input.sizes()[d - extra] == 1 && result.sizes()[d] != 1)) repeated.push_back(d);
  }
  if (!repeated.empty()) result = ops::sum(result, repeated, true);
  if (extra > 0) result = ops::reshape(result, input.sizes());
  if (result.dtype() != input.dtype()) result = ops::to(result, input.dtype());
  return result;
}

Recorder* recorder() { return current_recorder; }
void set_recorder(Recorder* recorder) { current_recorder = recorder; }

void set_fused_evaluation(FusedEvaluation evaluation) { fused_evaluation = evaluation; }

Tensor evaluate(GradientFormula formula, std::span<const Expr> operands, const Tensor& input) {
  const Tensor fused = fused_evaluation ? fused_evaluation(formula, operands) : Tensor();
  return fit_gradient(fused.defined() ? Expr(fused) : formula(operands), input);
}

void put(std::vector<Tensor>& gradients, const ops::GradArgs& args, size_t argument, GradientFormula formula,
         std::initializer_list<Expr> operands) {
  const Value& input = args.inputs[argument];
  const auto has_gradients = [](DType dtype) { return is_floating(dtype) || is_complex(dtype); };
  if (!args.needs(argument) || !input.is_tensor() || !has_gradients(input.to_tensor().dtype())) return;
  gradients[argument] = evaluate(formula, std::span(operands.begin(), operands.size()), input.to_tensor());
}

}  // namespace tensord::kernels::gradient
