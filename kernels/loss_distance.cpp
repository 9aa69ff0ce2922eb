// Distances and similarities between rows, and the losses made of them.
#include <cmath>
#include <limits>

#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/gradient_expr.h"
#include "kernels/loss.h"

namespace tensord::kernels {
namespace {

using gradient::Expr;

Expr clamp_min(const Expr& x, double low) { return Expr(ops::call("aten::clamp_min", x.tensor(), low)); }
Expr sum(const Expr& x, const Dims& dims) { return Expr(ops::call("aten::sum.dim_IntList", x.tensor(), dims)); }
// 1 - x, and the like.
Expr minus_from(double number, const Expr& x) { return Expr(ops::call("aten::rsub.Scalar", x.tensor(), number)); }

OP("aten::cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor")
    .direct([](const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
      const Dims dims{dim};
      const auto norm = [&](const Tensor& x) {
        return ops::call("aten::clamp_min", ops::call("aten::linalg_vector_norm", x, 2, dims, true), eps);
      };
      const Expr a = Expr(x1) / Expr(norm(x1)), b = Expr(x2) / Expr(norm(x2));
      return ops::call("aten::sum.dim_IntList", (a * b).tensor(), dims);
    })
    .composite();

// `eps` is added to each difference, which keeps the norm's gradient finite.
Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p, double eps, bool keepdim) {
  const Expr difference = Expr(a) - Expr(b) + eps;
  return ops::call("aten::norm.ScalarOpt_dim", difference.tensor(), p, Dims{std::max(a.ndim(), b.ndim()) - 1}, keepdim);
}
OP("aten::pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=9.9999999999999995e-07, bool keepdim=False) -> "
   "Tensor")
    .direct(pairwise_distance)
    .composite();

OP("aten::dist(Tensor self, Tensor other, Scalar p=2) -> Tensor")
    .direct([](const Tensor& a, const Tensor& b, ops::Scalar p) {
      return ops::call("aten::norm.Scalar", (Expr(a) - Expr(b)).tensor(), ops::Value(p));
    })
    .composite();

OP("aten::hinge_embedding_loss(Tensor self, Tensor target, float margin=1., int reduction=1) -> Tensor")
    .direct([](const Tensor& x, const Tensor& target, double margin, int64_t reduction) {
      const Expr y = target;
      const Expr far = gradient::where(y != 1, clamp_min(minus_from(margin, x), 0), 0.0),
                 near = gradient::where(y != -1, Expr(x), 0.0);
      return reduce_loss((far + near).tensor(), reduction);
    })
    .composite();

OP("aten::margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> Tensor")
    .direct([](const Tensor& a, const Tensor& b, const Tensor& target, double margin, int64_t reduction) {
      const Expr loss = -Expr(target) * (Expr(a) - Expr(b)) + margin;
      return reduce_loss(clamp_min(loss, 0).tensor(), reduction);
    })
    .composite();

// The products and norms carry their own small number, as PyTorch's do.
Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& target, double margin, int64_t reduction) {
  check(target.ndim() == 0 || target.ndim() == 1, "0D or 1D target tensor expected, multi-target not supported");
  if (target.ndim() == 1) {
    check(a.ndim() == 2 && b.ndim() == 2, "1D target tensor expects 2D input tensors, but found inputs with sizes ",
          to_string(a.sizes()), " and ", to_string(b.sizes()), ".");
  } else {
    check(a.ndim() == 1 && b.ndim() == 1, "0D target tensor expects 1D input tensors, but found inputs with sizes ",
          to_string(a.sizes()), " and ", to_string(b.sizes()), ".");
  }
  constexpr double kEps = 1e-12;
  const Dims last{target.ndim()};
  const Expr product = sum(Expr(a) * Expr(b), last), norm_a = sum(Expr(a) * Expr(a), last) + kEps,
             norm_b = sum(Expr(b) * Expr(b), last) + kEps;
  const Expr cosine = product / gradient::sqrt(norm_a * norm_b), y = target;
  const Expr loss = gradient::where(y == 1, minus_from(1, cosine), 0.0) +
                    gradient::where(y == -1, clamp_min(cosine - margin, 0), 0.0);
  return reduce_loss(loss.tensor(), reduction);
}
OP("aten::cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=1) -> "
   "Tensor")
    .direct(cosine_embedding_loss)
    .composite();

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative, double margin,
                           double p, double eps, bool swap, int64_t reduction) {
  check(anchor.ndim() == positive.ndim() && anchor.ndim() == negative.ndim(),
        "All inputs should have same dimension but got ", anchor.ndim(), "D, ", positive.ndim(), "D and ",
        negative.ndim(), "D inputs.");
  const Expr near = Expr(pairwise_distance(anchor, positive, p, eps, false));
  Expr far = Expr(pairwise_distance(anchor, negative, p, eps, false));
  if (swap) {
    const Tensor other = pairwise_distance(positive, negative, p, eps, false);
    far = Expr(ops::call("aten::minimum", far.tensor(), other));
  }
  return reduce_loss(clamp_min(near - far + margin, 0).tensor(), reduction);
}
OP("aten::triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1., float p=2., float "
   "eps=9.9999999999999995e-07, bool swap=False, int reduction=1) -> Tensor")
    .direct(triplet_margin_loss)
    .composite();

}  // namespace
}  // namespace tensord::kernels
