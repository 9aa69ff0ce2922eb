// Comparisons of whole tensors: isclose, allclose, equal, isin. Also operators that complex numbers need and that leave
// real ones unchanged: conj, real, angle.
#include <numbers>

#include "core/ops/attributes/written.h"
#include "kernels/expr/compose.h"
#include "ops/factory.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using compose::Expr;
using ops::Scalar;
using ops::TensorMeta;
using ops::WritesInto;

Tensor either(const Tensor& a, const Tensor& b) { return ops::logical_or(a, b); }
Tensor both(const Tensor& a, const Tensor& b) { return ops::logical_and(a, b); }

Tensor isclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  check(a.dtype() == b.dtype(), name_of(a.dtype()), " did not match ", name_of(b.dtype()));
  check(rtol >= 0, "rtol must be greater than or equal to zero, but got ", rtol);
  check(atol >= 0, "atol must be greater than or equal to zero, but got ", atol);
  Tensor close = (Expr(a) == Expr(b)).tensor();
  if (equal_nan && is_floating(a.dtype())) close = either(close, both(ops::isnan(a), ops::isnan(b)));
  if (rtol == 0 && atol == 0) return close;
  const DType dtype = is_floating(a.dtype()) ? a.dtype() : DType::kFloat32;
  const Expr x = compose::to(a, dtype), y = compose::to(b, dtype);
  const Expr allowed = gradient::abs(y * rtol) + atol, actual = gradient::abs(x - y);
  return either(close, both(ops::isfinite(actual.tensor()), (actual <= allowed).tensor()));
}
OP("aten::isclose").impl(isclose).constant_result().kind(ops::OpKind::kComposite);
OP("aten::allclose")
    .impl([](const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
      return ops::all(isclose(a, b, rtol, atol, equal_nan)).item_bool();
    })
    .dynamic_shape()
    .kind(ops::OpKind::kComposite);
OP("aten::equal")
    .impl([](const Tensor& a, const Tensor& b) {
      if (a.sizes() != b.sizes()) return false;
      check(a.dtype() == b.dtype(), "Expected object of data type ", name_of(a.dtype()), " but got data type ",
            name_of(b.dtype()), " for argument 'other' in call to equal");
      return ops::all((Expr(a) == Expr(b)).tensor()).item_bool();
    })
    .dynamic_shape()
    .kind(ops::OpKind::kComposite);

// --- isin

OP("aten::isin.Tensor_Tensor")
    .infer([](const Tensor& elements, const Tensor&, bool, bool) {
      return TensorMeta{elements.sizes(), DType::kBool, {}, elements.device()};
    })
    .constant_result();
OP("aten::isin.Tensor_Scalar")
    .impl([](const Tensor& elements, const Scalar& test, bool, bool invert) {
      return invert ? ops::ne(elements, test) : ops::eq(elements, test);
    })
    .constant_result()
    .kind(ops::OpKind::kComposite);
OP("aten::isin.Scalar_Tensor")
    .impl([](const Scalar& element, const Tensor& tests, bool, bool invert) {
      const Tensor found = ops::any(ops::eq(tests, element));
      return invert ? ops::logical_not(found) : found;
    })
    .constant_result()
    .kind(ops::OpKind::kComposite);

// --- powers in double

Tensor wide(const Tensor& x) { return compose::to(x, DType::kFloat64); }
OP("aten::float_power.Tensor_Tensor")
    .impl([](const Tensor& a, const Tensor& b) { return ops::pow(wide(a), wide(b)); })
    .composite()
    .set<WritesInto>(WritesInto::kAnyDType, WritesInto::kSharesWhole);
OP("aten::float_power.Tensor_Scalar")
    .impl([](const Tensor& a, const Scalar& b) { return ops::pow(wide(a), Scalar(b.to_double())); })
    .composite();
OP("aten::float_power.Scalar")
    .impl([](const Scalar& a, const Tensor& b) { return ops::pow(Scalar(a.to_double()), wide(b)); })
    .composite();

// --- real tensors are their own conjugates

Tensor itself(const Tensor& x) { return x; }
#define ITSELF(NAME) OP("aten::" NAME).impl(itself).composite()
ITSELF("conj");
ITSELF("real");
ITSELF("resolve_conj");
ITSELF("resolve_neg");
ITSELF("lift_fresh");
#undef ITSELF
OP("aten::conj_physical").impl([](const Tensor& x) { return ops::clone(x); }).composite();
OP("aten::isreal")
    .impl([](const Tensor& x) { return ops::ones_like(x, {.dtype = DType::kBool}); })
    .constant_result()
    .kind(ops::OpKind::kComposite);
OP("aten::angle")
    .impl([](const Tensor& self) {
      const Expr x = is_floating(self.dtype()) ? self : compose::to(self, DType::kFloat32);
      const Expr turned = compose::to((x < 0.0).tensor(), x.tensor().dtype());
      const Expr zero = ops::nan_to_num((x * 0.0).tensor(), 0.0, 0.0, 0.0);  // with a gradient of 0
      // NOLINTNEXTLINE(misc-redundant-expression): true for NaN
      return gradient::where(x != x, x, turned * std::numbers::pi + zero).tensor();
    })
    .composite();

}  // namespace
}  // namespace tensord::kernels
