// Distances and similarities between rows, and the losses based on them.
#include <cmath>
#include <limits>

#include "core/ops/complex.h"
#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/expr/expr.h"
#include "kernels/loss/loss.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using gradient::Expr;

Expr at_least(const Expr& x, double low) { return Expr(ops::clamp_min(x.tensor(), low)); }
Expr sum(const Expr& x, const Dims& dims, bool keepdim = false) { return Expr(ops::sum(x.tensor(), dims, keepdim)); }
// 1 - x, for example.
Expr minus_from(double number, const Expr& x) { return Expr(ops::rsub(x.tensor(), number)); }

// The norm of x, at least eps. Below that, its gradient is x / eps, as if the norm were the root of eps^2 + sum(x^2) -
// c.
Expr bounded_norm(const Tensor& x, const Dims& dims, double eps) {
  const auto norm = [&](const Tensor& of) { return Expr(ops::linalg_vector_norm(of, 2, dims, true)); };
  const auto value = [](const Expr& of) { return Expr(ops::detach(of.tensor())); };
  if (!is_grad_enabled()) return at_least(norm(x), eps);
  const Expr is_small = norm(ops::detach(x)) < eps, squares = sum(Expr(x) * Expr(x), dims, true);
  const Expr lifted = gradient::sqrt(gradient::where(is_small, squares + minus_from(eps * eps, value(squares)), 1.0));
  return gradient::where(is_small, lifted, norm(gradient::where(is_small, 1.0, Expr(x)).tensor()));
}
// The norms are those of the broadcast operands.
Tensor cosine_similarity(const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
  const DType dtype = promote_types(x1.dtype(), x2.dtype());
  check(is_floating(dtype), "expected common dtype to be floating point, yet common dtype is ", name_of(dtype));
  const Dims sizes = broadcast_sizes(x1.sizes(), x2.sizes()), dims{dim};
  const auto normalized = [&](const Tensor& x) {
    const Tensor wide = ops::expand(x.dtype() == dtype ? x : ops::to(x, dtype), sizes);
    return Expr(wide) / bounded_norm(wide, dims, eps);
  };
  return sum(normalized(x1) * normalized(x2), dims).tensor();
}
OP("aten::cosine_similarity").impl(cosine_similarity).composite();

// `eps` is added to each difference, which keeps the norm's gradient finite.
Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p, double eps, bool keepdim) {
  const Expr difference = Expr(a) - Expr(b) + eps;
  return ops::norm(difference.tensor(), p, Dims{std::max(a.ndim(), b.ndim()) - 1}, keepdim);
}
OP("aten::pairwise_distance").impl(pairwise_distance).composite();

OP("aten::dist")
    .impl([](const Tensor& a, const Tensor& b, ops::Scalar p) { return ops::norm((Expr(a) - Expr(b)).tensor(), p); })
    .composite();

OP("aten::hinge_embedding_loss")
    .impl([](const Tensor& x, const Tensor& target, double margin, int64_t reduction) {
      const Expr y = target;
      if (!is_floating(x.dtype())) {  // PyTorch subtracts from a tensor of the input's dtype
        const Tensor whole = ops::rsub(x, static_cast<int64_t>(margin));
        const Tensor losses = ops::add(ops::where((y != 1).tensor(), ops::clamp_min(whole, int64_t{0}), int64_t{0}),
                                       ops::where((y != -1).tensor(), x, int64_t{0}));
        return reduce_loss(losses, reduction);
      }
      const Expr far = gradient::where(y != 1, at_least(minus_from(margin, x), 0), 0.0),
                 near = gradient::where(y != -1, Expr(x), 0.0);
      return reduce_loss((far + near).tensor(), reduction);
    })
    .composite();

OP("aten::margin_ranking_loss")
    .impl([](const Tensor& a, const Tensor& b, const Tensor& target, double margin, int64_t reduction) {
      const Expr loss = -Expr(target) * (Expr(a) - Expr(b)) + margin;
      return reduce_loss(at_least(loss, 0).tensor(), reduction);
    })
    .composite();

// The products and norms include a small number, as PyTorch's do.
Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin, int64_t reduction) {
  check(target.ndim() == 0 || target.ndim() == 1, "0D or 1D target tensor expected, multi-target not supported");
  if (target.ndim() == 1) {
    check(a.ndim() == 2 && b.ndim() == 2, "1D target tensor expects 2D input tensors, but found inputs with sizes ",
          a.sizes(), " and ", b.sizes(), ".");
  } else {
    check(a.ndim() == 1 && b.ndim() == 1, "0D target tensor expects 1D input tensors, but found inputs with sizes ",
          a.sizes(), " and ", b.sizes(), ".");
  }
  constexpr double kEps = 1e-12;
  const Dims last{target.ndim()};
  const Expr product = sum(Expr(a) * Expr(b), last), norm_a = sum(Expr(a) * Expr(a), last) + kEps,
             norm_b = sum(Expr(b) * Expr(b), last) + kEps;
  const Expr cosine = product / gradient::sqrt(norm_a * norm_b), y = target;
  const Expr loss =
      gradient::where(y == 1, minus_from(1, cosine), 0.0) + gradient::where(y == -1, at_least(cosine - margin, 0), 0.0);
  return reduce_loss(loss.tensor(), reduction);
}
OP("aten::cosine_embedding_loss").impl(cosine_embedding_loss).composite();

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin,
                           double p, double eps, bool swap, int64_t reduction) {
  check(anchor.ndim() == positive.ndim() && anchor.ndim() == negative.ndim(),
        "All inputs should have same dimension but got ", anchor.ndim(), "D, ", positive.ndim(), "D and ",
        negative.ndim(), "D inputs.");
  const Expr near = Expr(pairwise_distance(anchor, positive, p, eps, false));
  Expr far = Expr(pairwise_distance(anchor, negative, p, eps, false));
  if (swap) {
    const Tensor other = pairwise_distance(positive, negative, p, eps, false);
    far = Expr(ops::minimum(far.tensor(), other));
  }
  return reduce_loss(at_least(near - far + margin, 0).tensor(), reduction);
}
OP("aten::triplet_margin_loss").impl(triplet_margin_loss).composite();

IMPL("aten::pairwise_distance aten::dist aten::triplet_margin_loss", ops::kComplexCPU, ops::kSameAsDense);

}  // namespace
}  // namespace tensord::kernels
