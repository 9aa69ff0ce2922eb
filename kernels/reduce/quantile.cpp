// Quantiles: sorted lanes, read at fractional positions.
#include "core/ops/attributes/written.h"
#include "kernels/expr/compose.h"
#include "kernels/expr/expr.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using compose::Expr;
using ops::WritesInto;

void check_quantile(const Tensor& x, const Tensor& q, const std::string& interpolation, const char* name) {
  check(x.numel() > 0, name, "() input tensor must be non-empty");
  check(q.ndim() <= 1, name, "() q must be a scalar or 1D tensor");
  check(x.dtype() == DType::kFloat32 || x.dtype() == DType::kFloat64, name,
        "() input tensor must be either float or double dtype");
  check(x.dtype() == q.dtype(), name, "() q tensor must be same dtype as the input tensor");
  check(interpolation == "linear" || interpolation == "lower" || interpolation == "higher" ||
            interpolation == "midpoint" || interpolation == "nearest",
        name, "() interpolation must be one of linear, lower, higher, midpoint or nearest, but got ", interpolation);
  if (q.is_meta() || q.numel() == 0) return;
  const Tensor within = ops::logical_and((Expr(q) >= 0).tensor(), (Expr(q) <= 1).tensor());
  check(ops::all(within).item_bool(), name, "() q values must be in the range [0, 1]");
}

// Moves the reduced dimension to the end.
Tensor lines_of(const Tensor& x, const std::optional<int64_t>& dim) {
  if (!dim) return ops::flatten(x, int64_t{0}, int64_t{-1});
  if (wrap_dim(*dim, x.ndim()) == x.ndim() - 1 || x.ndim() == 0) return x.ndim() ? x : ops::unsqueeze(x, 0);
  return ops::transpose(ops::unsqueeze(x, -1), wrap_dim(*dim, x.ndim()), -1);
}

// The position of each q in sorted lanes. Where NaN is not ignored, that of the NaN, which is sorted last.
Tensor positions(const Tensor& sorted, const Tensor& q, bool ignores_nan) {
  const int64_t last = sorted.size(-1) - 1;
  if (!ignores_nan) {
    const Tensor has_nan = ops::any(ops::isnan(sorted), int64_t{-1}, true);
    return gradient::where(has_nan, static_cast<double>(last), Expr(q) * static_cast<double>(last)).tensor();
  }
  const Tensor present = ops::logical_not(ops::isnan(sorted));
  const Tensor count = compose::to(ops::sum(present, Dims{-1}, true), q.dtype());
  return ops::clamp_min((Expr(q) * (Expr(count) - 1.0)).tensor(), ops::Scalar(0.0));
}

Tensor read_at(const Tensor& sorted, Tensor ranks, const std::string& interpolation) {
  if (interpolation == "lower") ranks = ops::floor(ranks);
  if (interpolation == "higher") ranks = ops::ceil(ranks);
  if (interpolation == "nearest") ranks = ops::round(ranks);
  const Tensor below = compose::to(ranks, DType::kInt64);
  const Tensor low = ops::gather(sorted, int64_t{-1}, below);
  if (interpolation != "linear" && interpolation != "midpoint") return low;
  const Tensor above = compose::to(ops::ceil(ranks), DType::kInt64);
  const Tensor high = ops::gather(sorted, int64_t{-1}, above);
  const Tensor weights = interpolation == "midpoint" ? ops::full_like(ranks, ops::Scalar(0.5))
                                                     : (Expr(ranks) - Expr(compose::to(below, ranks.dtype()))).tensor();
  return ops::lerp(low, high, weights);
}

Tensor quantile_of(const Tensor& x, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                   const std::string& interpolation, bool ignores_nan) {
  check_quantile(x, q, interpolation, ignores_nan ? "nanquantile" : "quantile");
  const Tensor lanes = lines_of(x, dim);
  const Tensor sorted = [&] {
    const ops::Op& sort = ops::get_op("aten::sort");
    return ops::run(sort, ops::bind(sort, {lanes, int64_t{-1}, false}))[0].to_tensor();
  }();
  Dims wide = sorted.sizes();
  wide[wide.size() - 1] = q.numel();
  const Tensor ranks = positions(sorted, ops::reshape(q, Dims{-1}), ignores_nan);
  Tensor out = read_at(sorted, ops::expand(ranks, wide), interpolation);
  // [..., q] with a 1 in place of the dimension, or without all dimensions.
  if (!dim) {
    Dims sizes(static_cast<size_t>(keepdim ? x.ndim() : 0), 1);
    sizes.push_back(q.numel());
    out = ops::reshape(out, sizes);
  } else if (x.ndim() > 0 && wrap_dim(*dim, x.ndim()) == x.ndim() - 1) {
    if (keepdim) out = ops::unsqueeze(out, -2);
  } else if (!keepdim && x.ndim() > 0) {
    out = ops::squeeze(out, wrap_dim(*dim, x.ndim()));
  }
  return q.ndim() == 0 ? ops::squeeze(out, int64_t{-1}) : ops::movedim(out, int64_t{-1}, int64_t{0});
}

void add_quantile(const std::string& name, bool ignores_nan) {
  ops::OpBuilder(concat("aten::", name), __FILE__, __LINE__)
      .impl(
          [=](const Tensor& x, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
              const std::string& interpolation) { return quantile_of(x, q, dim, keepdim, interpolation, ignores_nan); })
      .composite()
      .set<WritesInto>(WritesInto::kSameDType);
  ops::OpBuilder(concat("aten::", name, ".scalar"), __FILE__, __LINE__)
      .impl([=](const Tensor& x, double q, std::optional<int64_t> dim, bool keepdim, const std::string& interpolation) {
        check(q >= 0 && q <= 1, name, "() q must be in the range [0, 1] but got ", q);
        const Tensor at = ops::scalar_tensor(ops::Scalar(q), {.dtype = x.dtype(), .device = x.device()});
        return quantile_of(x, at, dim, keepdim, interpolation, ignores_nan);
      })
      .composite()
      .set<WritesInto>(WritesInto::kSameDType);
}
[[maybe_unused]] const bool quantile_registered =
    (add_quantile("quantile", false), add_quantile("nanquantile", true), true);

}  // namespace
}  // namespace tensord::kernels
