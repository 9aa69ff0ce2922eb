#pragma once

#include "kernels/gemm/gemm.h"

namespace tensord::kernels::linalg {

// out = exp(a), both square and dense by rows; `work` has room for 8 such matrices. NaN where `a` is not finite.
void matrix_exp(DType dtype, const Matrix& a, const Matrix& out, const Matrix& work);
inline constexpr int64_t kMatrixExpWork = 8;

}  // namespace tensord::kernels::linalg
