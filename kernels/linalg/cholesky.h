#pragma once

#include <cstdint>

#include "kernels/gemm/gemm.h"

namespace tensord::kernels::linalg {

// Factors A = L Lᵀ in place, of A's lower triangle; what lies above the diagonal becomes 0. Returns 0, or the order,
// from 1, of the first leading minor that is not positive: the factor ends there. REQUIRES: float32 or float64, square.
int32_t factor_cholesky(DType dtype, const Matrix& a);

// The positions, from 1, of the first zero of each row; 0 where there is none. int32.
Tensor first_zeros(const Tensor& x);

}  // namespace tensord::kernels::linalg
