#pragma once

#include <vector>

#include "core/ops/op.h"
#include "core/ops/run.h"

// The small language gradients are written in: a tensor or a number with operators that run
// tensord's own ops, so gradients of gradients work.
namespace tensord::kernels::gradient {

// A gradient whose arguments are tensors only, as OpBuilder::gradient takes it too.
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

#define TENSORD_EXPR_UNARY(NAME) Expr NAME(const Expr& a);
// clang-format off
#define TENSORD_EXPR_UNARIES(X)                                                 \
  X(abs) X(sign) X(square) X(exp) X(log) X(sqrt) X(rsqrt) X(sin) X(cos) X(sinh) \
  X(cosh) X(tanh) X(sigmoid) X(digamma) X(softplus) X(logical_not) X(erf)
// clang-format on
TENSORD_EXPR_UNARIES(TENSORD_EXPR_UNARY)
#undef TENSORD_EXPR_UNARY

// Sums `gradient` over what broadcasting repeated and converts it, so that it fits `input`.
Tensor fit_gradient(const Expr& gradient, const Tensor& input);

}  // namespace tensord::kernels::gradient
