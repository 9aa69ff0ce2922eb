// Complex matrices: the operators that LAPACK implements, and those that need no further code.
#include "kernels/linalg/complex.h"

#include "core/ops/complex.h"
#include "kernels/linalg/algebra.h"
#include "ops/complex.h"
#include "ops/linalg.h"
#include "ops/pointwise.h"
#include "ops/reduce.h"

namespace tensord::kernels::linalg {

using ops::GradArgs;

namespace {

// Holomorphic functions: conj(formula(conj(g))).
IMPL("aten::linalg_lu_factor_ex aten::linalg_solve_triangular aten::linalg_inv_ex", ops::kComplexCPU, ops::kSameAsDense)
    .holomorphic();
// Formulas written for both kinds, with conjugate transposes.
IMPL(
    "tensord::exchange_rows aten::linalg_cholesky_ex aten::cholesky_solve aten::cholesky_inverse aten::linalg_qr "
    "aten::linalg_householder_product aten::_linalg_eigh aten::_linalg_svd aten::linalg_eig aten::linalg_eigvals "
    "aten::linalg_pinv.atol_rtol_tensor aten::linalg_lstsq",
    ops::kComplexCPU, ops::kSameAsDense)
    .linear();
// Compositions, and operators without a gradient.
IMPL(
    "aten::linalg_lu_factor aten::_lu_with_info aten::lu_unpack aten::linalg_lu aten::linalg_lu_solve aten::lu_solve "
    "aten::linalg_solve aten::linalg_solve_ex aten::linalg_inv aten::inverse aten::linalg_det aten::det "
    "aten::linalg_slogdet aten::slogdet aten::triangular_solve aten::linalg_cholesky aten::cholesky aten::geqrf "
    "aten::orgqr aten::ormqr aten::qr aten::linalg_eigh aten::linalg_eigvalsh aten::symeig aten::linalg_svd "
    "aten::linalg_svdvals aten::svd aten::linalg_ldl_factor_ex aten::linalg_ldl_factor aten::linalg_ldl_solve "
    "aten::linalg_pinv.atol_rtol_float aten::linalg_pinv aten::linalg_pinv.rcond_tensor aten::pinverse "
    "aten::linalg_matrix_rank.atol_rtol_tensor aten::linalg_matrix_rank.atol_rtol_float aten::linalg_matrix_rank "
    "aten::linalg_matrix_rank.tol_tensor aten::linalg_matrix_norm aten::linalg_matrix_norm.str_ord aten::linalg_norm "
    "aten::linalg_norm.ord_str aten::nuclear_norm aten::nuclear_norm.dim aten::frobenius_norm aten::frobenius_norm.dim "
    "aten::linalg_cond aten::linalg_cond.p_str aten::matrix_exp aten::linalg_matrix_power aten::matrix_power "
    "aten::linalg_tensorinv aten::linalg_tensorsolve aten::linalg_vander aten::vander",
    ops::kComplexCPU, ops::kSameAsDense);

// The gradient formula is for real factors, so autograd records the operators that it is composed of.
IMPL("aten::_linalg_solve_ex", ops::kComplexComposite, [](std::span<const ops::Value> v) {
  ops::Returns returns;
  ops::get_op("aten::_linalg_solve_ex").kernel(kCPU)->function(v, returns.values);
  return returns;
});

// g conj(det) A⁻ᴴ. The solver refuses a singular matrix.
IMPL("aten::_linalg_det", ops::kComplexCPU, ops::kSameAsDense).gradient([](const GradArgs& args) {
  const Tensor &a = args.inputs[0].to_tensor(), &g = args.grad_outputs[0];
  std::vector<Tensor> out(1);
  if (!g) return out;
  const Tensor factor = product(g, ops::conj(args.outputs[0].to_tensor()));
  const Tensor right = product(unsqueezed(unsqueezed(factor, -1), -1), identity(rows_of(a), a));
  out[0] = ops::linalg_solve(adjoint(a), right);
  return out;
});

IMPL("aten::_linalg_slogdet", ops::kComplexComposite, [](const Tensor& a) -> ops::Returns {
  check_square("linalg.slogdet", a);
  const auto [lu, pivots, info] = call_for<3>("aten::linalg_lu_factor_ex", a, true, false);
  const Tensor diagonal = diagonal_of(lu), parity = ops::tensord_sign_of_exchanges(pivots, a.dtype());
  const Tensor sign = product(ops::prod(ops::sgn(diagonal), -1), parity);
  const Tensor magnitude = ops::sum(ops::log(absolute_of(diagonal)), Dims{-1});
  return {{sign, magnitude, lu, pivots}};
});
IMPL("aten::logdet", ops::kComplexComposite, [](const Tensor& a) {
  const auto parts = call_for<4>("aten::_linalg_slogdet", a);
  return sum_of(ops::log(parts[0]), parts[1]);
});

// exp(A + iB) is a block of the exponential of the real matrix [[A, −B], [B, A]].
IMPL("aten::linalg_matrix_exp", ops::kComplexComposite, [](const Tensor& a) {
  check_square("linalg.matrix_exp", a);
  const Tensor real = ops::real(a), imag = ops::imag(a);
  const int64_t n = rows_of(a);
  const Tensor upper = concatenated(real, negated(imag), -1), lower = concatenated(imag, real, -1);
  const Tensor whole = ops::linalg_matrix_exp(concatenated(upper, lower, -2));
  const Tensor left = narrowed(whole, -1, 0, n);
  return ops::complex(narrowed(left, -2, 0, n), narrowed(left, -2, n, n));
});

}  // namespace
}  // namespace tensord::kernels::linalg
