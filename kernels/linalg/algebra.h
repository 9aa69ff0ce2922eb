#pragma once

#include "core/tensor/grad_mode.h"
#include "kernels/linalg/linalg.h"
#include "ops/factory.h"
#include "ops/linalg.h"
#include "ops/linear.h"
#include "ops/pointwise.h"
#include "ops/view.h"

// Short names for the operators in gradients and compositions of linear algebra.
namespace tensord::kernels::linalg {

inline Tensor matmul(const Tensor& a, const Tensor& b) { return ops::matmul(a, b); }
inline Tensor lower_part(const Tensor& x, int64_t diagonal = 0) { return ops::tril(x, diagonal); }
inline Tensor upper_part(const Tensor& x, int64_t diagonal = 0) { return ops::triu(x, diagonal); }
inline Tensor sum_of(const Tensor& a, const Tensor& b) { return ops::add(a, b); }
inline Tensor difference(const Tensor& a, const Tensor& b) { return ops::sub(a, b); }
inline Tensor product(const Tensor& a, const Tensor& b) { return ops::mul(a, b); }
inline Tensor quotient(const Tensor& a, const Tensor& b) { return ops::div(a, b); }
inline Tensor scaled(const Tensor& x, double factor) { return ops::mul(x, ops::Scalar(factor)); }
inline Tensor negated(const Tensor& x) { return ops::neg(x); }
inline Tensor absolute_of(const Tensor& x) { return ops::abs(x); }
inline Tensor diagonal_of(const Tensor& x) { return ops::diagonal(x, 0, -2, -1); }
inline Tensor as_diagonal(const Tensor& x) { return ops::diag_embed(x); }
inline Tensor unsqueezed(const Tensor& x, int64_t dim) { return ops::unsqueeze(x, dim); }
inline Tensor narrowed(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  return ops::narrow(x, dim, start, length);
}
inline Tensor concatenated(const Tensor& a, const Tensor& b, int64_t dim) {
  return ops::cat(std::vector<Tensor>{a, b}, dim);
}
inline Tensor zeros_of(const Tensor& x) { return ops::zeros_like(x); }
// A matrix of ones on the diagonal, of x's dtype.
inline Tensor identity(int64_t size, const Tensor& x) {
  return ops::eye(size, {.dtype = x.dtype(), .device = x.device()});
}
// a + b; either may be undefined.
inline Tensor joined(const Tensor& a, const Tensor& b) { return !a ? b : !b ? a : sum_of(a, b); }
// A X = B, or X A = B when not `is_left`.
inline Tensor solved_triangular(const Tensor& a, const Tensor& b, bool is_upper, bool is_left = true,
                                bool is_unit = false) {
  return ops::linalg_solve_triangular(a, b, {.upper = is_upper, .left = is_left, .unitriangular = is_unit});
}
// The conjugate transpose; of real matrices the transpose.
inline Tensor adjoint(const Tensor& x) { return is_complex(x.dtype()) ? ops::mH(x) : transposed(x); }

// The gradient of A, from that of its pseudo-inverse.
Tensor gradient_of_pinv(const Tensor& g, const Tensor& inverse, const Tensor& a);

}  // namespace tensord::kernels::linalg
