#pragma once

#include "core/tensor/grad_mode.h"
#include "kernels/linalg/linalg.h"

// Short names for the operators that gradients and compositions of linear algebra are written with.
namespace tensord::kernels::linalg {

inline Tensor matmul(const Tensor& a, const Tensor& b) { return ops::call("aten::matmul", a, b); }
inline Tensor lower_part(const Tensor& x, int64_t diagonal = 0) { return ops::call("aten::tril", x, diagonal); }
inline Tensor upper_part(const Tensor& x, int64_t diagonal = 0) { return ops::call("aten::triu", x, diagonal); }
inline Tensor sum_of(const Tensor& a, const Tensor& b) { return ops::call("aten::add.Tensor", a, b); }
inline Tensor difference(const Tensor& a, const Tensor& b) { return ops::call("aten::sub.Tensor", a, b); }
inline Tensor product(const Tensor& a, const Tensor& b) { return ops::call("aten::mul.Tensor", a, b); }
inline Tensor quotient(const Tensor& a, const Tensor& b) { return ops::call("aten::div.Tensor", a, b); }
inline Tensor scaled(const Tensor& x, double factor) { return ops::call("aten::mul.Scalar", x, ops::Scalar(factor)); }
inline Tensor negated(const Tensor& x) { return ops::call("aten::neg", x); }
inline Tensor absolute_of(const Tensor& x) { return ops::call("aten::abs", x); }
inline Tensor diagonal_of(const Tensor& x) { return ops::call("aten::diagonal", x, 0, -2, -1); }
inline Tensor as_diagonal(const Tensor& x) { return ops::call("aten::diag_embed", x, 0, -2, -1); }
inline Tensor unsqueezed(const Tensor& x, int64_t dim) { return ops::call("aten::unsqueeze", x, dim); }
inline Tensor narrowed(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  return ops::call("aten::narrow", x, dim, start, length);
}
inline Tensor concatenated(const Tensor& a, const Tensor& b, int64_t dim) {
  return ops::call("aten::cat", std::vector<Tensor>{a, b}, dim);
}
inline Tensor zeros_of(const Tensor& x) { return ops::call("aten::zeros_like", x); }
// A matrix of ones on the diagonal, of x's dtype.
inline Tensor identity(int64_t size, const Tensor& x) {
  return ops::call("aten::eye", size, x.dtype(), ops::Value(), x.device());
}
// a + b, where either may be undefined.
inline Tensor joined(const Tensor& a, const Tensor& b) { return !a ? b : !b ? a : sum_of(a, b); }
// A X = B, or X A = B when not `is_left`.
inline Tensor solved_triangular(const Tensor& a, const Tensor& b, bool is_upper, bool is_left = true,
                                bool is_unit = false) {
  return ops::call("aten::linalg_solve_triangular", a, b, is_upper, is_left, is_unit);
}
// The conjugate transpose; of real matrices the transpose.
inline Tensor adjoint(const Tensor& x) { return is_complex(x.dtype()) ? ops::call("aten::mH", x) : transposed(x); }

// The gradient of A, from that of its pseudo-inverse.
Tensor gradient_of_pinv(const Tensor& g, const Tensor& inverse, const Tensor& a);

}  // namespace tensord::kernels::linalg
