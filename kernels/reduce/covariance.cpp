// cov and corrcoef: rows are variables, columns observations.
#include "core/ops/complex.h"
#include "kernels/expr/compose.h"
#include "ops/complex.h"
#include "ops/linear.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using compose::Expr;
using MaybeTensor = std::optional<Tensor>;

void check_weights(const MaybeTensor& weights, const char* name, int64_t observations, bool is_integral_wanted) {
  if (!weights) return;
  check(weights->ndim() <= 1, "cov(): expected ", name, " to have one or fewer dimensions but got ", name, " with ",
        weights->ndim(), " dimensions");
  check(is_integral_wanted ? is_integral(weights->dtype(), false) : is_floating(weights->dtype()), "cov(): expected ",
        name, " to have ", is_integral_wanted ? "integral" : "floating point", " dtype but got ", name, " with ",
        name_of(weights->dtype()), " dtype");
  check(weights->numel() == observations, "cov(): expected ", name,
        " to have the same numel as there are observations in the input but got ", weights->numel(),
        " != ", observations);
  check(weights->is_meta() || weights->numel() == 0 || ops::ge(ops::min(*weights), ops::Scalar(0)).item_bool(),
        "cov(): ", name, " cannot be negative");
}

Tensor cov(const Tensor& self, int64_t correction, const MaybeTensor& fweights, const MaybeTensor& aweights) {
  check(self.ndim() <= 2, "cov(): expected input to have two or fewer dimensions but got an input with ", self.ndim(),
        " dimensions");
  check(self.dtype() != DType::kBool, "cov(): bool dtype is not supported for input");
  const Tensor in = self.ndim() < 2 ? ops::reshape(self, Dims{1, -1}) : self;
  const int64_t observations = in.size(1);
  check_weights(fweights, "fweights", observations, true);
  check_weights(aweights, "aweights", observations, false);
  MaybeTensor weights = fweights;
  if (aweights) weights = weights ? (Expr(*weights) * Expr(*aweights)).tensor() : *aweights;

  const Expr total = weights ? Expr(ops::sum(*weights)) : Expr(static_cast<double>(observations));
  const Tensor weighted = weights ? (Expr(in) * Expr(*weights)).tensor() : in;
  const Tensor average = (Expr(ops::sum(weighted, Dims{1}, true)) / total).tensor();
  Expr norm = total - static_cast<double>(correction);
  if (correction != 0 && aweights) {
    const Expr share = Expr(ops::sum((Expr(*weights) * Expr(*aweights)).tensor())) / total;
    norm = total - share * static_cast<double>(correction);
  }
  if (norm.is_tensor())
    norm = ops::clamp_min(norm.tensor(), ops::Scalar(0));
  else
    norm = std::max(norm.number(), 0.0);
  const Tensor centered = (Expr(in) - Expr(average)).tensor();
  const Tensor right = weights ? (Expr(centered) * Expr(*weights)).tensor() : centered;
  const Tensor other = is_complex(right.dtype()) ? ops::conj(right) : right;
  const Tensor product = ops::mm(centered, ops::t(other));
  return ops::squeeze((Expr(product) / norm).tensor());
}

Tensor corrcoef(const Tensor& self) {
  check(self.ndim() <= 2, "corrcoef(): expected input to have two or fewer dimensions but got an input with ",
        self.ndim(), " dimensions");
  const Tensor c = cov(self, 1, {}, {});
  if (c.ndim() == 0) return (Expr(c) / Expr(c)).tensor();
  const Tensor variance = ops::diag(c);
  const Tensor deviation = ops::sqrt(is_complex(c.dtype()) ? ops::real(variance) : variance);
  const Expr rows = ops::reshape(deviation, Dims{-1, 1}), columns = ops::reshape(deviation, Dims{1, -1});
  const Tensor found = (Expr(c) / rows / columns).tensor();
  const auto clamped = [](const Tensor& x) { return ops::clamp(x, ops::Scalar(-1), ops::Scalar(1)); };
  if (!is_complex(found.dtype())) return clamped(found);
  return ops::complex(clamped(ops::real(found)), clamped(ops::imag(found)));
}

OP("aten::cov").impl(cov).composite();
OP("aten::corrcoef").impl(corrcoef).composite();
IMPL("aten::cov aten::corrcoef", ops::kComplexCPU, ops::kSameAsDense);

}  // namespace
}  // namespace tensord::kernels
