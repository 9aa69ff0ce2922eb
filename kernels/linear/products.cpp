// Products and distances composed of others: addr, inner, kron, bilinear, cdist, pdist.
#include <cmath>

#include "core/ops/attributes/written.h"
#include "kernels/expr/compose.h"
#include "ops/composite.h"
#include "ops/embedding.h"
#include "ops/factory.h"
#include "ops/linear.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/script.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using compose::Expr;
using ops::Scalar;
using ops::WritesInto;

bool is_zero(const Scalar& x) { return x.to_double() == 0; }
// A factor of 1 does not change the type, not even bool.
Tensor scaled(const Tensor& x, const Scalar& factor) { return factor.to_double() == 1 ? x : ops::mul(x, factor); }

Tensor addr(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& given_beta, const Scalar& given_alpha) {
  // For bool tensors the factors count as bools too.
  const bool is_bool = self.dtype() == DType::kBool && a.dtype() == DType::kBool && b.dtype() == DType::kBool;
  const auto factor = [&](const Scalar& x) { return is_bool ? Scalar(!is_zero(x)) : x; };
  const Scalar beta = factor(given_beta), alpha = factor(given_alpha);
  check(a.ndim() == 1, "addr: Expected 1-D argument vec1, but got ", a.ndim(), "-D");
  check(b.ndim() == 1, "addr: Expected 1-D argument vec2, but got ", b.ndim(), "-D");
  const Tensor product = ops::outer(a, b);
  // The numbers do not widen the type that the tensors promote to: bool and int32 give int32.
  const DType type = ops::result_type(self, product);
  const Tensor outer = scaled(ops::to(product, type), alpha);
  check(broadcast_sizes(self.sizes(), outer.sizes()) == outer.sizes(), "addr: expected self to be expandable to ",
        outer.sizes(), " but got ", self.sizes());
  return is_zero(beta) ? outer : ops::add(scaled(ops::to(self, type), beta), outer);
}
OP("aten::addr").impl(addr).composite().set<WritesInto>(WritesInto::kAnyDType, WritesInto::kSharesWhole);

OP("aten::inner")
    .impl([](const Tensor& a, const Tensor& b) {
      check(a.dtype() == b.dtype(), "expected scalar type ", name_of(a.dtype()), " but found ", name_of(b.dtype()));
      if (a.ndim() == 0 || b.ndim() == 0) return (Expr(a) * Expr(b)).tensor();
      check(a.size(-1) == b.size(-1), "inner() the last dimension must match on both input tensors but got shapes ",
            a.sizes(), " and ", b.sizes());
      return ops::tensordot(a, b, Dims{-1}, Dims{-1});
    })
    .composite()
    .set<WritesInto>(WritesInto::kSameDType, WritesInto::kSharesWhole);

// Every element of a times all of b: [a0, 1, a1, 1 …] · [1, b0, 1, b1 …], then pairs of dimensions are joined.
OP("aten::kron")
    .impl([](const Tensor& a, const Tensor& b) {
      const int64_t ndim = std::max(a.ndim(), b.ndim());
      const auto size_of = [&](const Tensor& x, int64_t dim) {
        const int64_t at = dim - (ndim - x.ndim());
        return at < 0 ? 1 : x.sizes()[at];
      };
      Dims left, right, joined;
      for (int64_t dim = 0; dim < ndim; ++dim) {
        const int64_t m = size_of(a, dim), n = size_of(b, dim);
        left.push_back(m);
        left.push_back(1);
        right.push_back(1);
        right.push_back(n);
        int64_t product = 0;
        check(!__builtin_mul_overflow(m, n, &product), "kron: the size of dimension ", dim, " overflows");
        joined.push_back(product);
      }
      check(left.size() <= kMaxDims, "kron: too many dimensions: ", ndim);
      const Tensor product = (Expr(ops::reshape(a, left)) * Expr(ops::reshape(b, right))).tensor();
      return ops::reshape(product, joined);
    })
    .composite()
    .set<WritesInto>(WritesInto::kAnyDType, WritesInto::kSharesWhole);

// out[…, k] = sum over i, j of x[…, i] w[k, i, j] y[…, j].
Tensor bilinear(const Tensor& x, const Tensor& y, const Tensor& w, const std::optional<Tensor>& bias) {
  check(x.ndim() == y.ndim(), "bilinear(): input dimensions do not match: got ", x.ndim(), " and ", y.ndim());
  check(w.ndim() == 3 && x.ndim() > 0, "bilinear(): expected a weight of 3 dimensions, but got ", w.ndim());
  for (int64_t dim = 0; dim + 1 < x.ndim(); ++dim) {
    check(x.size(dim) == y.size(dim), "bilinear(): input batch dimensions do not match at dim ", dim, ": got ",
          x.size(dim), " and ", y.size(dim));
  }
  check(x.size(-1) == w.size(1), "bilinear(): input1 size does not match weight size: got ", x.size(-1),
        " but expected ", w.size(1));
  check(y.size(-1) == w.size(2), "bilinear(): input2 size does not match weight size: got ", y.size(-1),
        " but expected ", w.size(2));
  check(!bias || bias->numel() == w.size(0), "bilinear(): bias size does not match weight size: got ",
        bias ? bias->numel() : 0, " but expected ", w.size(0));
  Dims sizes = x.sizes();
  sizes[sizes.size() - 1] = w.size(0);
  int64_t rows = 1;
  for (int64_t dim = 0; dim + 1 < x.ndim(); ++dim) rows *= x.size(dim);
  const Tensor a = ops::reshape(x, Dims{rows, x.size(-1)}), b = ops::reshape(y, Dims{rows, 1, y.size(-1)});
  const Tensor panels = ops::reshape(ops::transpose(w, 0, 1), Dims{w.size(1), w.size(0) * w.size(2)});
  const Tensor left = ops::reshape(ops::mm(a, panels), Dims{rows, w.size(0), w.size(2)});
  Tensor out = compose::to(ops::sum((Expr(left) * Expr(b)).tensor(), Dims{-1}), left.dtype());
  out = ops::reshape(out, sizes);
  return bias ? (Expr(out) + Expr(*bias)).tensor() : out;
}
OP("aten::bilinear").impl(bilinear).composite();

// --- distances

Tensor norm_of(const Tensor& x, double p) { return ops::norm(x, p, Dims{-1}); }

// |a|² + |b|² - 2 a·b as one product. Where the distance is 0, the gradient of its root is 0.
Tensor euclidean(const Tensor& a, const Tensor& b) {
  const auto squares = [](const Tensor& x) { return ops::sum(ops::square(x), Dims{-1}, true); };
  const Tensor left = squares(a), right = squares(b), ones = ops::ones_like(left), others = ops::ones_like(right);
  const Tensor one = ops::cat({ops::mul(a, Scalar(-2)), left, ones}, -1);
  const Tensor two = ops::cat({b, others, right}, -1);
  const Tensor square = ops::clamp_min(ops::matmul(one, ops::transpose(two, -2, -1)), Scalar(0));
  const Expr is_none = Expr(square) == 0.0;
  return gradient::where(is_none, 0.0, gradient::sqrt(gradient::where(is_none, 1.0, square))).tensor();
}

constexpr int64_t kSmallest = 25;  // above this many rows PyTorch uses the product too

Tensor cdist(const Tensor& x, const Tensor& y, double p, std::optional<int64_t> mode) {
  check(x.ndim() >= 2, "cdist only supports at least 2D tensors, X1 got: ", x.ndim(), "D");
  check(y.ndim() >= 2, "cdist only supports at least 2D tensors, X2 got: ", y.ndim(), "D");
  check(x.size(-1) == y.size(-1), "X1 and X2 must have the same number of columns. X1: ", x.size(-1),
        " X2: ", y.size(-1));
  check(is_floating(x.dtype()) && is_floating(y.dtype()),
        "cdist only supports floating-point dtypes, X1 got: ", name_of(x.dtype()), ", X2 got: ", name_of(y.dtype()));
  check(p >= 0, "cdist only supports non-negative p values");
  check(!mode || (*mode >= 0 && *mode <= 2), "possible modes: 0, 1, 2, but was: ", mode.value_or(0));
  const bool is_large = x.size(-2) > kSmallest || y.size(-2) > kSmallest;
  if (p == 2 && x.size(-1) > 0 && (mode.value_or(0) == 1 || (mode.value_or(0) == 0 && is_large)))
    return euclidean(x, y);
  return norm_of((Expr(ops::unsqueeze(x, -2)) - Expr(ops::unsqueeze(y, -3))).tensor(), p);
}
OP("aten::cdist").impl(cdist).composite();

OP("aten::pdist")
    .impl([](const Tensor& x, double p) {
      check(x.ndim() == 2, "pdist only supports 2D tensors, got: ", x.ndim(), "D");
      check(is_floating(x.dtype()), "pdist only supports floating-point dtypes");
      check(p >= 0, "pdist only supports non-negative p values");
      const Tensor pairs = ops::triu_indices(x.size(0), x.size(0), int64_t{1}, {.device = x.device()});
      const auto rows = [&](int64_t which) { return ops::index_select(x, int64_t{0}, ops::select(pairs, 0, which)); };
      return norm_of((Expr(rows(0)) - Expr(rows(1))).tensor(), p);
    })
    .composite();

}  // namespace
}  // namespace tensord::kernels
