// Arithmetic, comparisons and selection of complex numbers.
#include "core/ops/complex.h"
#include "kernels/complex/elementwise.h"
#include "kernels/expr/compose.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using complex_loops::map_one;
using complex_loops::map_three;
using complex_loops::map_two;
using complex_loops::over;
using complex_loops::Real;
using complex_loops::times;
using compose::Expr;
using ops::GradArgs;
using ops::Scalar;

// --- sums and differences, with a factor

template <class F>
Tensor with_factor(const Operand& a, const Operand& b, const Scalar& alpha, F f) {
  const std::complex<double> factor = alpha.to_complex();
  if (factor == 1.0) {
    return map_two(a, b, [f]<class T>(T x, T y) { return f(x, y); });
  }
  return map_two(a, b, [f, factor]<class T>(T x, T y) { return f(x, times(T(factor), y)); });
}
const auto plus = []<class T>(T x, T y) -> T { return x + y; };
const auto minus = []<class T>(T x, T y) -> T { return x - y; };
const auto minus_from = []<class T>(T x, T y) -> T { return y - x; };

template <class B>
Tensor add(const Tensor& a, B b, Scalar alpha) {
  return with_factor(a, b, alpha, plus);
}
template <class B>
Tensor sub(const Tensor& a, B b, Scalar alpha) {
  return with_factor(a, b, alpha, minus);
}
// other − alpha · self
template <class B>
Tensor rsub(const Tensor& a, B b, Scalar alpha) {
  return with_factor(b, a, alpha, minus);
}
IMPL("aten::add.Tensor", ops::kComplexCPU, add<const Tensor&>).holomorphic();
IMPL("aten::add.Scalar", ops::kComplexCPU, add<Scalar>).holomorphic();
IMPL("aten::sub.Tensor", ops::kComplexCPU, sub<const Tensor&>).holomorphic();
IMPL("aten::sub.Scalar", ops::kComplexCPU, sub<Scalar>).holomorphic();
IMPL("aten::rsub.Tensor", ops::kComplexCPU, rsub<const Tensor&>).holomorphic();
IMPL("aten::rsub.Scalar", ops::kComplexCPU, rsub<Scalar>).holomorphic();

// --- products and quotients

template <class B>
Tensor mul(const Tensor& a, B b) {
  return map_two(a, b, []<class T>(T x, T y) { return times(x, y); });
}
template <class B>
Tensor div(const Tensor& a, B b) {
  return map_two(a, b, []<class T>(T x, T y) { return over(x, y); });
}
template <class B>
Tensor div_mode(const Tensor& a, B b, std::optional<std::string> mode) {
  if (mode) fail(ErrorCode::kInvalidArgument, "div: rounding is not defined for complex numbers");
  return div<B>(a, b);
}
IMPL("aten::mul.Tensor", ops::kComplexCPU, mul<const Tensor&>).holomorphic();
IMPL("aten::mul.Scalar", ops::kComplexCPU, mul<Scalar>).holomorphic();
IMPL("aten::div.Tensor", ops::kComplexCPU, div<const Tensor&>).holomorphic();
IMPL("aten::div.Scalar", ops::kComplexCPU, div<Scalar>).holomorphic();
IMPL("aten::div.Tensor_mode", ops::kComplexCPU, div_mode<const Tensor&>).holomorphic();
IMPL("aten::div.Scalar_mode", ops::kComplexCPU, div_mode<Scalar>).holomorphic();

IMPL("aten::addcmul", ops::kComplexComposite, [](const Tensor& self, const Tensor& a, const Tensor& b, Scalar value) {
  return ops::add(self, ops::mul(ops::mul(a, b), value));
});
IMPL("aten::addcdiv", ops::kComplexComposite, [](const Tensor& self, const Tensor& a, const Tensor& b, Scalar value) {
  return ops::add(self, ops::mul(ops::div(a, b), value));
});

Tensor interpolated(const Tensor& a, const Tensor& b, const ops::Value& weight) {
  check(a.dtype() == b.dtype(), "expected dtype ", name_of(a.dtype()), " for `end` but got dtype ", name_of(b.dtype()));
  const Tensor step = ops::sub(b, a);
  return ops::add(a, weight.is_tensor() ? ops::mul(step, weight.to_tensor()) : ops::mul(step, weight.to_scalar()));
}
IMPL("aten::lerp.Scalar", ops::kComplexComposite,
     [](const Tensor& a, const Tensor& b, Scalar weight) { return interpolated(a, b, weight); });
IMPL("aten::lerp.Tensor", ops::kComplexComposite,
     [](const Tensor& a, const Tensor& b, const Tensor& weight) { return interpolated(a, b, weight); });

// --- powers

template <class T>
T power(T a, T b) {
  if (b == T(0)) return T(1);
  if (b == T(1)) return a;
  if (b == T(2)) return times(a, a);
  if (b == T(Real<T>(0.5))) return std::sqrt(a);
  if (a == T(0)) return b.real() > 0 ? T(0) : std::pow(a, b);
  return std::pow(a, b);
}
const auto powers = []<class T>(T x, T y) { return power(x, y); };
// conj(b a^(b−1)) g, 0 where b is 0; conj(y log a) g, 0 where a is 0 and b is not negative.
std::vector<Tensor> power_gradient(const GradArgs& args) {
  std::vector<Tensor> out(args.inputs.size());
  const Expr g = args.grad_outputs[0];
  const auto &a = args.inputs[0], &b = args.inputs[1];
  const auto conj = [](const Tensor& x) { return Expr(ops::conj(x)); };
  if (a.is_tensor() && args.needs(0)) {
    Tensor slope;
    if (!b.is_tensor()) {
      const std::complex<double> e = b.to_complex();
      slope = e == 0.0 ? gradient::zeros_like(a) : ops::mul(ops::pow(a.to_tensor(), Scalar(e - 1.0)), Scalar(e));
    } else {
      const Tensor lower = ops::pow(a.to_tensor(), ops::sub(b.to_tensor(), 1));
      const Tensor product = ops::mul(b.to_tensor(), lower);
      slope = ops::where(ops::eq(b.to_tensor(), 0), gradient::zeros_like(product), product);
    }
    out[0] = gradient::fit_gradient(g * conj(slope), a.to_tensor());
  }
  if (b.is_tensor() && args.needs(1)) {
    const Tensor y = args.outputs[0].to_tensor();
    const auto log_of = [](const Tensor& x) { return ops::log(compose::to(x, complex_dtype(x.dtype()))); };
    const Tensor product =
        a.is_tensor() ? ops::mul(y, log_of(a.to_tensor())) : ops::mul(y, Scalar(std::log(a.to_complex())));
    Tensor slope = product;
    if (a.is_tensor() || a.to_complex() == 0.0) {
      const Tensor real = ops::real(b.to_tensor());
      Tensor is_flat = ops::ge(real, 0);
      if (a.is_tensor()) is_flat = ops::logical_and(ops::eq(a.to_tensor(), 0), is_flat);
      slope = ops::where(is_flat, gradient::zeros_like(product), product);
    }
    out[1] = gradient::fit_gradient(g * conj(slope), b.to_tensor());
  }
  return out;
}
IMPL("aten::pow.Tensor_Tensor", ops::kComplexCPU, [](const Tensor& a, const Tensor& b) {
  return map_two(a, b, powers);
}).gradient(power_gradient);
IMPL("aten::pow.Tensor_Scalar", ops::kComplexCPU, [](const Tensor& a, Scalar b) {
  return map_two(a, b, powers);
}).gradient(power_gradient);
IMPL("aten::pow.Scalar", ops::kComplexCPU, [](Scalar a, const Tensor& b) {
  return map_two(a, b, powers);
}).gradient(power_gradient);

Tensor widest(const Tensor& x) { return ops::to(x, is_complex(x.dtype()) ? DType::kComplex128 : DType::kFloat64); }
IMPL("aten::float_power.Tensor_Tensor", ops::kComplexComposite,
     [](const Tensor& a, const Tensor& b) { return ops::pow(widest(a), widest(b)); });
IMPL("aten::float_power.Tensor_Scalar", ops::kComplexComposite, [](const Tensor& a, Scalar b) {
  return ops::pow(b.is_complex() ? ops::to(a, DType::kComplex128) : widest(a), b);
});
IMPL("aten::float_power.Scalar", ops::kComplexComposite, [](Scalar a, const Tensor& b) {
  return ops::pow(a, a.is_complex() ? ops::to(b, DType::kComplex128) : widest(b));
});

// --- comparisons

template <class B>
Tensor equal(const Tensor& a, B b) {
  return map_two(a, b, []<class T>(T x, T y) { return x == y; });
}
template <class B>
Tensor not_equal(const Tensor& a, B b) {
  return map_two(a, b, []<class T>(T x, T y) { return x != y; });
}
IMPL("aten::eq.Tensor", ops::kComplexCPU, equal<const Tensor&>);
IMPL("aten::eq.Scalar", ops::kComplexCPU, equal<Scalar>);
IMPL("aten::ne.Tensor", ops::kComplexCPU, not_equal<const Tensor&>);
IMPL("aten::ne.Scalar", ops::kComplexCPU, not_equal<Scalar>);

#define TRUTH(NAME, EXPRESSION)                                                \
  IMPL("aten::" NAME, ops::kComplexCPU, [](const Tensor& a, const Tensor& b) { \
    return map_two(a, b, []<class T>(T x, T y) -> bool {                       \
      const bool p = x != T(0), q = y != T(0);                                 \
      return EXPRESSION;                                                       \
    });                                                                        \
  })
TRUTH("logical_and", p&& q);
TRUTH("logical_or", p || q);
TRUTH("logical_xor", p != q);
#undef TRUTH
IMPL("aten::logical_not", ops::kComplexCPU,
     [](const Tensor& x) { return map_one(x, []<class T>(T z) { return z == T(0); }); });

Tensor is_close(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  check(a.dtype() == b.dtype(), name_of(a.dtype()), " did not match ", name_of(b.dtype()));
  check(rtol >= 0, "rtol must be greater than or equal to zero, but got ", rtol);
  check(atol >= 0, "atol must be greater than or equal to zero, but got ", atol);
  return map_two(a, b, [=]<class T>(T x, T y) -> bool {
    if (x == y) return true;
    if (equal_nan && x != x && y != y) return true;
    const Real<T> allowed = Real<T>(atol) + std::abs(Real<T>(rtol) * std::abs(y)), actual = std::abs(x - y);
    return std::isfinite(actual) && actual <= allowed;
  });
}
IMPL("aten::isclose", ops::kComplexCPU, is_close);
IMPL("aten::allclose", ops::kComplexCPU,
     [](const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
       return ops::all(is_close(a, b, rtol, atol, equal_nan)).item_bool();
     });
IMPL("aten::equal", ops::kComplexCPU, [](const Tensor& a, const Tensor& b) {
  if (a.sizes() != b.sizes()) return false;
  check(a.dtype() == b.dtype(), "Expected object of data type ", name_of(a.dtype()), " but got data type ",
        name_of(b.dtype()), " for argument 'other' in call to equal");
  return ops::all(equal<const Tensor&>(a, b)).item_bool();
});

// --- selection

template <class A, class B>
Tensor select(const Tensor& condition, A a, B b) {
  const std::array values{Operand(a), Operand(b)};
  const DType dtype = complex_dtype(promote_operands(values));
  return complex_loops::map(dtype, std::array{Operand(condition), Operand(a), Operand(b)},
                            []<class T>(T c, T x, T y) { return c != T(0) ? x : y; });
}
IMPL("aten::where.self", ops::kComplexCPU, select<const Tensor&, const Tensor&>).linear();
IMPL("aten::where.ScalarOther", ops::kComplexCPU, select<const Tensor&, Scalar>).linear();
IMPL("aten::where.ScalarSelf", ops::kComplexCPU, [](const Tensor& condition, Scalar a, const Tensor& b) {
  return select<Scalar, const Tensor&>(condition, a, b);
}).linear();

template <class B>
Tensor masked_fill(const Tensor& x, const Tensor& mask, B value) {
  check(is_complex(x.dtype()), "masked_fill: a complex value cannot be written into a tensor of ", name_of(x.dtype()));
  return complex_loops::map(x.dtype(), std::array{Operand(x), Operand(mask), Operand(value)},
                            []<class T>(T a, T m, T b) { return m != T(0) ? b : a; });
}
IMPL("aten::masked_fill.Scalar", ops::kComplexCPU, masked_fill<Scalar>).linear();
IMPL("aten::masked_fill.Tensor", ops::kComplexCPU, masked_fill<const Tensor&>).linear();

}  // namespace
}  // namespace tensord::kernels
