#pragma once

#include <cstdint>

#include "kernels/gemm/gemm.h"

namespace tensord::kernels::linalg {

// Factors A = P L U in place, with L below the diagonal, which is of ones. `pivots` gets min(rows, columns) row numbers
// from 1: row i was exchanged with row pivots[i], in this order. Returns 0, or the first i, from 1, with U[i, i] = 0.
// Elements that are not finite give such results, and pivots in range all the same.
// REQUIRES: float32 or float64, columns dense (a.row_stride 1).
int32_t factor_lu(DType dtype, const Matrix& a, int32_t* pivots);

}  // namespace tensord::kernels::linalg
