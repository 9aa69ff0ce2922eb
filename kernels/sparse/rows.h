#pragma once

#include "core/ops/op.h"

// Loops of rows_cpu.cpp. Each row of a result is one thread's, and its terms are added in the order in which they lie:
// the same bits for any number of threads. All throw Error for indices that are out of range.
namespace tensord::kernels {

void scatter_kernel(const ops::KernelContext&, const Tensor& places, const Tensor& values, int64_t count, Tensor& out);
void gather_kernel(const ops::KernelContext&, const Tensor& places, const Tensor& x, Tensor& out);
void product_kernel(const ops::KernelContext&, const Tensor& starts, const Tensor& columns, const Tensor& values,
                    const Tensor& dense, Tensor& out);
void sampled_kernel(const ops::KernelContext&, const Tensor& starts, const Tensor& columns, const Tensor& a,
                    const Tensor& b, Tensor& out);
void solve_kernel(const ops::KernelContext&, const Tensor& starts, const Tensor& columns, const Tensor& values,
                  const Tensor& right, bool upper, bool transpose, bool unitriangular, Tensor& out);
void softmax_kernel(const ops::KernelContext&, const Tensor& groups, const Tensor& values, int64_t count, bool is_log,
                    Tensor& out);

// Of row_indices_cpu.cpp.
// The transposed matrix: its rows, and which value each element of it had.
struct TransposedRows {
  Tensor starts, columns, order;
};
TransposedRows transposed_rows(const Tensor& starts, const Tensor& columns, int64_t column_count);
// Whether each element of a square matrix is read by a triangular solution.
Tensor elements_of_triangle(const Tensor& starts, const Tensor& columns, bool upper, bool unitriangular);

}  // namespace tensord::kernels
