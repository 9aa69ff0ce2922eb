// Linear systems, inverses and determinants by LU.
#include <limits>

#include "kernels/expr/expr.h"
#include "kernels/linalg/algebra.h"
#include "kernels/linalg/lu.h"
#include "ops/factory.h"
#include "ops/linalg.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace tensord::kernels::linalg {
namespace {

using ops::GradArgs;

// A right side with one dimension fewer than the matrices is a batch of vectors.
bool is_vector(const Tensor& a, const Tensor& b) {
  return b.ndim() == 1 || (a.ndim() - 1 == b.ndim() && b.sizes() == Dims(a.sizes().span().first(a.sizes().size() - 1)));
}

struct Solved {
  Tensor result, lu, pivots, info;
};

Solved solve_with_factors(const Tensor& a, const Tensor& b, bool is_left) {
  constexpr const char* kName = "linalg.solve";
  check_real(kName, a);
  check_square(kName, a);
  check(a.dtype() == b.dtype(), kName, ": Expected A and B to have the same dtype, but found A of type ",
        name_of(a.dtype()), " and B of type ", name_of(b.dtype()), " instead");
  const bool takes_vector = is_vector(a, b);
  const Tensor matrix = takes_vector ? unsqueezed(b, -1) : b;
  check_matrix(kName, matrix, "B");
  check_equation(kName, a, matrix, is_left);
  const auto [lu, pivots, info] = call_for<3>("aten::linalg_lu_factor_ex", a, true, false);
  const Tensor x = ops::linalg_lu_solve(lu, pivots, matrix, {.left = is_left});
  return {takes_vector ? ops::squeeze(x, -1) : x, lu, pivots, info};
}

ops::Returns linalg_solve_parts(const Tensor& a, const Tensor& b, bool is_left, bool check_errors) {
  const Solved solved = solve_with_factors(a, b, is_left);
  if (check_errors) check_info("torch.linalg.solve_ex", solved.info);
  return {{solved.result, solved.lu, solved.pivots, solved.info}};
}

// With X = A⁻¹ B: A⁻ᵀ g for B, and -A⁻ᵀ g Xᵀ for A. The factors are reused, but are not part of the autograd graph.
std::vector<Tensor> gradient_of_solve(const GradArgs& args) {
  const Tensor &a = args.inputs[0].to_tensor(), &b = args.inputs[1].to_tensor(), &x = args.outputs[0].to_tensor();
  const bool is_left = args.inputs[2].to_bool(), takes_vector = is_vector(a, b);
  std::vector<Tensor> gradients(args.inputs.size());
  if (!args.grad_outputs[0]) return gradients;
  const Tensor g = takes_vector ? unsqueezed(args.grad_outputs[0], -1) : args.grad_outputs[0];
  const Tensor of_b = is_grad_enabled() ? ops::linalg_solve(transposed(a), g, {.left = is_left})
                                        : ops::linalg_lu_solve(args.outputs[1].to_tensor(), args.outputs[2].to_tensor(),
                                                               g, {.left = is_left, .adjoint = true});
  if (args.needs(0)) {
    const Tensor turned = transposed(takes_vector ? unsqueezed(x, -1) : x);
    const Tensor outer = is_left ? matmul(of_b, turned) : matmul(turned, of_b);
    gradients[0] = gradient::fit_gradient(negated(outer), a);
  }
  if (args.needs(1)) {
    gradients[1] = gradient::fit_gradient(takes_vector ? ops::squeeze(of_b, -1) : of_b, b);
  }
  return gradients;
}

OP("aten::_linalg_solve_ex").impl(linalg_solve_parts).gradient(gradient_of_solve).saves("A, result0, result1, result2");
OP("aten::linalg_solve_ex")
    .impl([](const Tensor& a, const Tensor& b, bool is_left, bool check_errors) -> std::tuple<Tensor, Tensor> {
      const auto [x, lu, pivots, info] = call_for<4>("aten::_linalg_solve_ex", a, b, is_left, check_errors);
      return {x, info};
    })
    .composite();
OP("aten::linalg_solve")
    .impl([](const Tensor& a, const Tensor& b, bool is_left) {
      const auto [x, lu, pivots, info] = call_for<4>("aten::_linalg_solve_ex", a, b, is_left, false);
      check_info("torch.linalg.solve", info);
      return x;
    })
    .composite();

std::tuple<Tensor, Tensor> invert(const Tensor& a, bool check_errors) {
  check_real("linalg.inv", a);
  check_square("linalg.inv", a);
  const auto [lu, pivots, info] = call_for<3>("aten::linalg_lu_factor_ex", a, true, false);
  const Tensor inverse = ops::linalg_lu_solve(lu, pivots, identity(rows_of(a), a));
  if (check_errors) check_info("linalg.inv_ex", info);
  return {inverse, info};
}
OP("aten::linalg_inv_ex")
    .impl(invert)
    .gradient(gradient::of_first([](const GradArgs& args, const Tensor& g) {
      const Tensor turned = transposed(args.outputs[0].to_tensor());
      return negated(matmul(turned, matmul(g, turned)));
    }))
    .saves("result0");
Tensor checked_inverse(const Tensor& a) {
  const auto [inverse, info] = call_for<2>("aten::linalg_inv_ex", a, false);
  check_info("linalg.inv", info);
  return inverse;
}
OP("aten::linalg_inv").impl(checked_inverse).composite();
OP("aten::inverse").impl(checked_inverse).composite();

// For each matrix, -1 if its number of row exchanges is odd.
OP("tensord::sign_of_exchanges")
    .infer([](const Tensor& pivots, DType dtype) -> ops::TensorMeta {
      return {Dims(pivots.sizes().span().first(pivots.sizes().size() - 1)), dtype, {}, pivots.device()};
    })
    .constant_result();
Tensor sign_of_exchanges(const Tensor& pivots, DType dtype) { return ops::tensord_sign_of_exchanges(pivots, dtype); }

ops::Returns det_parts(const Tensor& a) {
  check_square("linalg.det", a);
  if (!is_floating(a.dtype())) check_real("linalg.det", a);
  const auto [lu, pivots, info] = call_for<3>("aten::linalg_lu_factor_ex", a, true, false);
  const Tensor of_upper = ops::prod(diagonal_of(lu), -1);
  return {{product(of_upper, sign_of_exchanges(pivots, a.dtype())), lu, pivots}};
}

// Whether some matrix is so close to singular that det(A) A⁻¹ would consist of rounding errors.
bool has_nearly_singular(const Tensor& lu) {
  const Tensor diagonals = absolute_of(diagonal_of(lu)).to(Device{}).to(DType::kFloat64).contiguous();
  const double precision =
      lu.dtype() == DType::kFloat32 ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  return has_nearly_singular_diagonal(diagonals, precision);
}

// The matrix of cofactors, the derivative of the determinant: det(U V) U diag(the product of all other singular values)
// Vᵀ, for any rank.
Tensor cofactors(const Tensor& a) {
  const auto [u, s, vh] = call_for<3>("aten::_linalg_svd", a, false, true);
  const Tensor one = identity(rows_of(a), a), others = difference(ops::ones_like(one), one);
  const Tensor without_own = sum_of(product(unsqueezed(s, -2), others), one);
  const Tensor values = ops::prod(without_own, -1);
  const Tensor sign = ops::sign(ops::linalg_det(matmul(u, vh)));
  const Tensor whole = matmul(product(u, unsqueezed(values, -2)), vh);
  return product(unsqueezed(unsqueezed(sign, -1), -1), whole);
}

// det(A) A⁻ᵀ g. When the gradient itself is recorded, a singular matrix is an error, as in PyTorch.
Tensor gradient_of_det(const GradArgs& args, const Tensor& g) {
  const Tensor &a = args.inputs[0].to_tensor(), &det = args.outputs[0].to_tensor();
  const Tensor &lu = args.outputs[1].to_tensor(), &pivots = args.outputs[2].to_tensor();
  const auto by_matrix = [](const Tensor& x) { return unsqueezed(unsqueezed(x, -1), -1); };
  if (!is_grad_enabled() && has_nearly_singular(lu)) return product(by_matrix(g), cofactors(a));
  const Tensor right = product(by_matrix(product(g, det)), identity(rows_of(a), a));
  if (is_grad_enabled()) return ops::linalg_solve(transposed(a), right);
  return ops::linalg_lu_solve(lu, pivots, right, {.adjoint = true});
}
OP("aten::_linalg_det")
    .impl(det_parts)
    .gradient(gradient::of_first(gradient_of_det))
    .saves("A, result0, result1, result2");
Tensor det(const Tensor& a) { return call_for<3>("aten::_linalg_det", a)[0]; }
OP("aten::linalg_det").impl(det).composite();
OP("aten::det").impl(det).composite();

ops::Returns slogdet_parts(const Tensor& a) {
  check_square("linalg.slogdet", a);
  check_real("linalg.slogdet", a);
  const auto [lu, pivots, info] = call_for<3>("aten::linalg_lu_factor_ex", a, true, false);
  const Tensor diagonal = diagonal_of(lu);
  const Tensor sign = product(ops::prod(ops::sign(diagonal), -1), sign_of_exchanges(pivots, a.dtype()));
  const Tensor magnitude = ops::sum(ops::log(absolute_of(diagonal)), Dims{-1});
  return {{sign, magnitude, lu, pivots}};
}
// A⁻ᵀ g for the logarithm; the sign is constant.
std::vector<Tensor> gradient_of_slogdet(const GradArgs& args) {
  const Tensor &a = args.inputs[0].to_tensor(), &g = args.grad_outputs[1];
  if (!g) return {args.grad_outputs[0] ? zeros_of(a) : Tensor()};
  const Tensor right = product(unsqueezed(unsqueezed(g, -1), -1), identity(rows_of(a), a));
  if (is_grad_enabled()) return {ops::linalg_solve(transposed(a), right)};
  return {ops::linalg_lu_solve(args.outputs[2].to_tensor(), args.outputs[3].to_tensor(), right, {.adjoint = true})};
}
OP("aten::_linalg_slogdet").impl(slogdet_parts).gradient(gradient_of_slogdet).saves("A, result2, result3");
std::tuple<Tensor, Tensor> slogdet(const Tensor& a) {
  const auto [sign, magnitude, lu, pivots] = call_for<4>("aten::_linalg_slogdet", a);
  return {sign, magnitude};
}
OP("aten::linalg_slogdet").impl(slogdet).composite();
OP("aten::slogdet").impl(slogdet).composite();
OP("aten::logdet")
    .impl([](const Tensor& a) {
      const auto [sign, magnitude] = slogdet(a);
      // NaN where the determinant is negative; -inf where it is 0.
      return sum_of(ops::log(sign), magnitude);
    })
    .composite();

}  // namespace
}  // namespace tensord::kernels::linalg
