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
using complex_loops::map_two;
using compose::Expr;
using ops::GradArgs;
using ops::Scalar;

// --- sums and differences, with a factor

template <ComplexFormula kPlain, ComplexFormula kTimes>
Tensor with_factor(const Operand& a, const Operand& b, const Scalar& alpha) {
  if (alpha.to_complex() == 1.0) return map_two<kPlain>(a, b);
  const std::array operands{a, b};
  return complex_loops::map<kTimes>(complex_dtype(promote_operands(operands)), std::array{a, b, Operand(alpha)});
}

template <class B>
Tensor add(const Tensor& a, B b, Scalar alpha) {
  return with_factor<ComplexFormula::add, ComplexFormula::add_times>(a, b, alpha);
}
template <class B>
Tensor sub(const Tensor& a, B b, Scalar alpha) {
  return with_factor<ComplexFormula::sub, ComplexFormula::sub_times>(a, b, alpha);
}
// other − alpha · self
template <class B>
Tensor rsub(const Tensor& a, B b, Scalar alpha) {
  return with_factor<ComplexFormula::sub, ComplexFormula::sub_times>(b, a, alpha);
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
  return map_two<ComplexFormula::mul>(a, b);
}
template <class B>
Tensor div(const Tensor& a, B b) {
  return map_two<ComplexFormula::div>(a, b);
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
  return map_two<ComplexFormula::pow>(a, b);
}).gradient(power_gradient);
IMPL("aten::pow.Tensor_Scalar", ops::kComplexCPU, [](const Tensor& a, Scalar b) {
  return map_two<ComplexFormula::pow>(a, b);
}).gradient(power_gradient);
IMPL("aten::pow.Scalar", ops::kComplexCPU, [](Scalar a, const Tensor& b) {
  return map_two<ComplexFormula::pow>(a, b);
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
  return map_two<ComplexFormula::eq>(a, b);
}
template <class B>
Tensor not_equal(const Tensor& a, B b) {
  return map_two<ComplexFormula::ne>(a, b);
}
IMPL("aten::eq.Tensor", ops::kComplexCPU, equal<const Tensor&>);
IMPL("aten::eq.Scalar", ops::kComplexCPU, equal<Scalar>);
IMPL("aten::ne.Tensor", ops::kComplexCPU, not_equal<const Tensor&>);
IMPL("aten::ne.Scalar", ops::kComplexCPU, not_equal<Scalar>);

#define TRUTH(NAME)                      \
  IMPL("aten::" #NAME, ops::kComplexCPU, \
       [](const Tensor& a, const Tensor& b) { return map_two<ComplexFormula::NAME>(a, b); })
TRUTH(logical_and);
TRUTH(logical_or);
TRUTH(logical_xor);
#undef TRUTH
IMPL("aten::logical_not", ops::kComplexCPU, [](const Tensor& x) { return map_one<ComplexFormula::logical_not>(x); });

Tensor is_close(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  check(a.dtype() == b.dtype(), name_of(a.dtype()), " did not match ", name_of(b.dtype()));
  check(rtol >= 0, "rtol must be greater than or equal to zero, but got ", rtol);
  check(atol >= 0, "atol must be greater than or equal to zero, but got ", atol);
  return map_two<ComplexFormula::isclose>(a, b, {rtol, atol, equal_nan ? 1.0 : 0.0});
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
  return complex_loops::map<ComplexFormula::where>(dtype, std::array{Operand(condition), Operand(a), Operand(b)});
}
IMPL("aten::where.self", ops::kComplexCPU, select<const Tensor&, const Tensor&>).linear();
IMPL("aten::where.ScalarOther", ops::kComplexCPU, select<const Tensor&, Scalar>).linear();
IMPL("aten::where.ScalarSelf", ops::kComplexCPU, [](const Tensor& condition, Scalar a, const Tensor& b) {
  return select<Scalar, const Tensor&>(condition, a, b);
}).linear();

template <class B>
Tensor masked_fill(const Tensor& x, const Tensor& mask, B value) {
  check(is_complex(x.dtype()), "masked_fill: a complex value cannot be written into a tensor of ", name_of(x.dtype()));
  return complex_loops::map<ComplexFormula::masked_fill>(x.dtype(),
                                                         std::array{Operand(x), Operand(mask), Operand(value)});
}
IMPL("aten::masked_fill.Scalar", ops::kComplexCPU, masked_fill<Scalar>).linear();
IMPL("aten::masked_fill.Tensor", ops::kComplexCPU, masked_fill<const Tensor&>).linear();

}  // namespace
}  // namespace tensord::kernels
