#pragma once

#include "kernels/linalg/linalg.h"

// What our own loops do for matrices of real numbers, and LAPACK for complex ones. Matrices are batches whose last two
// dimensions lie column by column; they are written in place.
namespace tensord::kernels::linalg {

// LU with rows exchanged: pivots from 1, and a code for each matrix.
void factor_lu_complex(const Tensor& a, const Tensor& pivots, const Tensor& info);
// A = L Lᴴ, in the lower or upper triangle; the other one stays.
void factor_cholesky_complex(const Tensor& a, bool is_upper, const Tensor& info);
// A X = B, or X A = B, in place of B; of `a`, of any strides and batch, only a triangle is read.
void solve_triangular_complex(const Tensor& a, const Tensor& x, bool is_upper, bool is_left, bool is_unit);

}  // namespace tensord::kernels::linalg
