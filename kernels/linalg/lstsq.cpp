// Least squares: X with the smallest |A X - B|, and the smallest |X| among those.
#include "kernels/expr/expr.h"
#include "kernels/linalg/algebra.h"
#include "ops/linalg.h"
#include "ops/view.h"

namespace tensord::kernels::linalg {
namespace {

using ops::GradArgs;

bool is_lstsq_vector(const Tensor& a, const Tensor& b) { return a.ndim() - 1 == b.ndim(); }

// The solution is pinv(A) B.
std::vector<Tensor> gradient_of_lstsq(const GradArgs& args) {
  const Tensor &a = args.inputs[0].to_tensor(), &b = args.inputs[1].to_tensor();
  std::vector<Tensor> gradients(args.inputs.size());
  if (!args.grad_outputs[0]) return gradients;
  const bool takes_vector = is_lstsq_vector(a, b);
  const Tensor g = takes_vector ? unsqueezed(args.grad_outputs[0], -1) : args.grad_outputs[0];
  const Tensor right = takes_vector ? unsqueezed(b, -1) : b;
  const Tensor inverse = ops::linalg_pinv(a, {.atol = Tensor()});
  if (args.needs(0)) {
    gradients[0] = gradient::fit_gradient(gradient_of_pinv(matmul(g, adjoint(right)), inverse, a), a);
  }
  if (args.needs(1)) {
    const Tensor of_b = matmul(adjoint(inverse), g);
    gradients[1] = gradient::fit_gradient(takes_vector ? ops::squeeze(of_b, -1) : of_b, b);
  }
  return gradients;
}

OP("aten::linalg_lstsq").gradient(gradient_of_lstsq).saves("self, b").dynamic_shape();

}  // namespace
}  // namespace tensord::kernels::linalg
