// Eigenvalues and eigenvectors of general matrices, which are complex numbers.
#include "kernels/expr/expr.h"
#include "kernels/linalg/algebra.h"
#include "ops/factory.h"
#include "ops/linalg.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace tensord::kernels::linalg {
namespace {

using ops::GradArgs;

// V⁻ᴴ (diag(gL) + (Vᴴ gV − VᴴV Re diag(Vᴴ gV)) / E) Vᴴ with E[i, j] = conj(l_j − l_i): vectors keep length 1.
Tensor gradient_of(const Tensor& values, const Tensor& v, const Tensor& of_values, const Tensor& of_vectors) {
  const Tensor turned = adjoint(v);
  if (!of_vectors) return ops::linalg_solve(turned, product(unsqueezed(of_values, -1), turned));
  const Tensor inner = matmul(turned, of_vectors), along = diagonal_of(inner);
  const Tensor scales = ops::to(ops::real(along), v.dtype());
  Tensor whole = difference(inner, matmul(turned, product(v, unsqueezed(scales, -2))));
  const Tensor one = identity(rows_of(v), v);
  const Tensor gaps = ops::conj(difference(unsqueezed(values, -2), unsqueezed(values, -1)));
  whole = product(quotient(whole, sum_of(gaps, one)), difference(ops::ones_like(one), one));
  if (of_values) whole = sum_of(whole, as_diagonal(of_values));
  return ops::linalg_solve(turned, matmul(whole, turned));
}

// A real matrix has a real gradient.
Tensor fitted(const Tensor& gradient, const Tensor& a) {
  return is_complex(a.dtype()) ? gradient : ops::real(gradient);
}

OP("aten::linalg_eig")
    .gradient([](const GradArgs& args) {
      std::vector<Tensor> out(1);
      const Tensor &of_values = args.grad_outputs[0], &of_vectors = args.grad_outputs[1];
      if (!of_values && !of_vectors) return out;
      const Tensor g = gradient_of(args.outputs[0].to_tensor(), args.outputs[1].to_tensor(), of_values, of_vectors);
      out[0] = fitted(g, args.inputs[0].to_tensor());
      return out;
    })
    .saves("result0, result1");
OP("aten::linalg_eigvals")
    .gradient(gradient::of_first([](const GradArgs& args, const Tensor& g) {
      const Tensor& a = args.inputs[0].to_tensor();
      const auto [values, vectors] = call_for<2>("aten::linalg_eig", a);
      return fitted(gradient_of(values, vectors, g, Tensor()), a);
    }))
    .saves("self");

}  // namespace
}  // namespace tensord::kernels::linalg
