#pragma once

#include <cstdint>

#include "core/tensor/tensor.h"
#include "kernels/gemm/gemm.h"

namespace tensord::kernels::linalg {

// Factors A = P L U in place, with L below the diagonal, which is of ones. `pivots` gets min(rows, columns) row numbers
// from 1: row i was exchanged with row pivots[i], in this order. Returns 0, or the first i, from 1, with U[i, i] = 0.
// Elements that are not finite give such results, and pivots in range all the same.
// REQUIRES: float32 or float64, columns dense (a.row_stride 1).
int32_t factor_lu(DType dtype, const Matrix& a, int32_t* pivots);
// Whether one of the factors' diagonals, float64 and absolute, has a number that is as 0 next to its largest one, of a
// dtype of this precision.
bool has_nearly_singular_diagonal(const Tensor& diagonals, double precision);

}  // namespace tensord::kernels::linalg
