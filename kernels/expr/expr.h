#pragma once

#include <vector>

#include "core/ops/op.h"
#include "core/ops/run.h"
#include "ops/factory.h"

// A small language for gradients and compositions: a tensor or a number with C++ operators that call tensord's
// operators, so that gradients of gradients work.
namespace tensord::kernels::gradient {

// A gradient whose arguments are all tensors, which OpBuilder::gradient takes too.
using GradientFn = std::function<std::vector<Tensor>(const ops::GradArgs&)>;

struct Expr {
  ops::Value value;
  Expr() = default;
  Expr(const Tensor& tensor) : value(tensor) {}
  Expr(const ops::Value& value) : value(value) {}
  Expr(double number) : value(number) {}
  Expr(int number) : value(number) {}
  bool is_tensor() const { return value.is_tensor(); }
  double number() const { return value.to_scalar().to_double(); }
  const Tensor& tensor() const { return value.to_tensor(); }
};

Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator/(const Expr& a, const Expr& b);
Expr operator-(const Expr& a);
Expr operator>(const Expr& a, const Expr& b);
Expr operator>=(const Expr& a, const Expr& b);
Expr operator<(const Expr& a, const Expr& b);
Expr operator<=(const Expr& a, const Expr& b);
Expr operator==(const Expr& a, const Expr& b);
Expr operator!=(const Expr& a, const Expr& b);
Expr where(const Expr& condition, const Expr& a, const Expr& b);
Expr floor_of_div(const Expr& a, const Expr& b);
Expr trunc_of_div(const Expr& a, const Expr& b);
Expr pow(const Expr& a, const Expr& b);
Expr xlogy(const Expr& a, const Expr& b);
Expr xlog1py(const Expr& a, const Expr& b);
Expr special_zeta(const Expr& a, const Expr& b);
Expr polygamma(int order, const Expr& a);
// Zeros of the shape of a tensor.
Expr zeros(const Expr& like);
// Gradients that are operators: g where x is above the threshold; those of sigmoid and tanh from their result y.
Expr threshold_backward(const Expr& g, const Expr& x, const Expr& threshold);
Expr sigmoid_backward(const Expr& g, const Expr& y);
Expr tanh_backward(const Expr& g, const Expr& y);
Expr silu_backward(const Expr& g, const Expr& x);
// Others by the names of their operators; scalar arguments of the activation follow x.
Expr activation_backward(const char* op, const Expr& g, const Expr& x, std::initializer_list<Expr> numbers);
inline Expr hardswish_backward(const Expr& g, const Expr& x) {
  return activation_backward("aten::hardswish_backward", g, x, {});
}
inline Expr hardsigmoid_backward(const Expr& g, const Expr& x) {
  return activation_backward("aten::hardsigmoid_backward", g, x, {});
}
inline Expr hardtanh_backward(const Expr& g, const Expr& x, const Expr& min, const Expr& max) {
  return activation_backward("aten::hardtanh_backward", g, x, {min, max});
}
inline Expr hardshrink_backward(const Expr& g, const Expr& x, const Expr& lambd) {
  return activation_backward("aten::hardshrink_backward", g, x, {lambd});
}
inline Expr softshrink_backward(const Expr& g, const Expr& x, const Expr& lambd) {
  return activation_backward("aten::softshrink_backward", g, x, {lambd});
}
inline Expr softplus_backward(const Expr& g, const Expr& x, const Expr& beta, const Expr& threshold) {
  return activation_backward("aten::softplus_backward", g, x, {beta, threshold});
}
Expr leaky_relu_backward(const Expr& g, const Expr& x, const Expr& negative_slope);
Expr elu_backward(const Expr& g, const Expr& x, const Expr& alpha, const Expr& scale, const Expr& input_scale);

#define TENSORD_EXPR_UNARY(NAME) Expr NAME(const Expr& a);
// clang-format off
#define TENSORD_EXPR_UNARIES(X)                                                 \
  X(abs) X(sign) X(square) X(exp) X(log) X(sqrt) X(rsqrt) X(sin) X(cos) X(sinh) \
  X(cosh) X(tanh) X(sigmoid) X(digamma) X(softplus) X(logical_not) X(erf)             \
  X(i0) X(special_i0e) X(special_i1) X(special_i1e) X(special_erfcx) X(lgamma)
// clang-format on
TENSORD_EXPR_UNARIES(TENSORD_EXPR_UNARY)
#undef TENSORD_EXPR_UNARY

// Sums `gradient` over what broadcasting repeated and converts it, so that it fits `input`.
Tensor fit_gradient(const Expr& gradient, const Tensor& input);

// Notes the operators that expressions on one thread call, in place of running them.
class Recorder {
 public:
  virtual ~Recorder() = default;
  // Returns the result, a meta tensor. `arguments` are bound.
  virtual ops::Value add(const ops::Op& op, std::vector<ops::Value> arguments) = 0;
};
// The calling thread's recorder, or null.
Recorder* recorder();
void set_recorder(Recorder* recorder);

// A gradient by elementwise operators. It has no state: its address names it.
using GradientFormula = Expr (*)(std::span<const Expr> operands);
// Computes a formula in one pass over memory; returns an undefined tensor if it cannot. kernels/fused sets it before
// main.
using FusedEvaluation = Tensor (*)(GradientFormula formula, std::span<const Expr> operands);
void set_fused_evaluation(FusedEvaluation evaluation);
// formula(operands), fitted to `input`. When the calling thread records nothing, the formula is
// compiled once for operands of these shapes and then done in one pass over memory. Operands that it
// does not use may be meta tensors, or none.
Tensor evaluate(GradientFormula formula, std::span<const Expr> operands, const Tensor& input);
// Evaluates the gradient of one argument, if that is a floating point tensor and its gradient is needed.
void put(std::vector<Tensor>& gradients, const ops::GradArgs& args, size_t argument, GradientFormula formula,
         std::initializer_list<Expr> operands);

// Gradients of an operator with a gradient for its first argument only: make(args, g) computes it from the incoming
// gradient, and is not called if none flows or none is needed.
template <class F>
GradientFn of_first(F make) {
  return [make](const ops::GradArgs& args) {
    std::vector<Tensor> gradients(args.inputs.size());
    if (args.grad_outputs[0].defined() && args.needs(0)) gradients[0] = make(args, args.grad_outputs[0]);
    return gradients;
  };
}

// Sizes of a forward argument, a tensor.
inline const Dims& sizes_of(const ops::GradArgs& args, size_t argument) {
  return args.inputs[argument].to_tensor().sizes();
}
inline Dims ints_of(const ops::GradArgs& args, size_t argument) {
  return ops::Unbox<ops::IntList>::get(args.inputs[argument]);
}
// Zeros of the shape and dtype of a tensor, which may be meta.
inline Tensor zeros_like(const ops::Value& tensor) { return ops::zeros_like(tensor.to_tensor()); }

}  // namespace tensord::kernels::gradient
