#pragma once

#include <cstdint>
#include <functional>

#include "core/tensor/tensor.h"

namespace tensord::kernels {

// A matrix in memory; strides in elements, in any order (row-major, column-major or neither). `data` points to element
// (0, 0).
struct Matrix {
  void* data;
  int64_t rows, cols;
  int64_t row_stride, col_stride;

  Matrix transposed() const { return {data, cols, rows, col_stride, row_stride}; }
};

// The matrix of the last two dimensions of `tensor`, at `offset` elements from its first.
Matrix matrix_of(const Tensor& tensor, int64_t offset = 0);

// c = alpha * a @ b + beta * c for elements of `dtype`; c is not read when beta is 0. Transposed
// operands are used as they lie; others are copied. f32 and f64 run on tiles of our own (f32 with AVX-512 on oneDNN,
// one row on gemv), f16 and bf16 accumulate in f32, integers wrap. Uses the caller's thread budget.
// REQUIRES: shapes agree; c overlaps neither a nor b.
void gemm(DType dtype, double alpha, const Matrix& a, const Matrix& b, double beta, const Matrix& c);

// Whether f32 products go to oneDNN's sgemm: where the processor has AVX-512. Without, sgemm takes memory at every
// call, and our tiles take about as long.
bool uses_sgemm();

// The same for f32; returns false unless few rows or columns of c make another algorithm faster.
bool try_narrow_gemm(float alpha, const Matrix& a, const Matrix& b, float beta, const Matrix& c);

// The same for float16 and bfloat16.
void half_gemm(DType dtype, double alpha, const Matrix& a, const Matrix& b, double beta, const Matrix& c);

// Puts `from`, broadcast to its sizes, into c before a product is added to it; fast where a bias is repeated by rows.
void start_product(const Tensor& from, const Tensor& c);

// Calls product(i) for each of `count` matrix products of `work` multiply-adds: small ones side by
// side, large ones one after the other, each on all threads.
void run_batches(int64_t count, int64_t work, const std::function<void(int64_t)>& product);

// c[i] = alpha * a[i] @ b[i] + beta * c[i] over 3-d tensors of one dtype.
void batched_gemm(double alpha, const Tensor& a, const Tensor& b, double beta, const Tensor& c);

// y[n] = sum_k w[n, k] x[k], w row-major with row stride `ld`; memory-bound, parallel over n.
void gemv_rows(const float* w, int64_t ld, const float* x, float* y, int64_t n, int64_t k);
// y[n] = sum_k x[k] w[k, n], w row-major with row stride `ld`; parallel over n.
void gemv_columns(const float* w, int64_t ld, const float* x, float* y, int64_t n, int64_t k);
// The same for matrices of float16 or bfloat16, if the processor converts them while loading; otherwise returns false
// and does nothing.
bool gemv_rows(DType dtype, const void* w, int64_t ld, const float* x, float* y, int64_t n, int64_t k);
bool gemv_columns(DType dtype, const void* w, int64_t ld, const float* x, float* y, int64_t n, int64_t k);

}  // namespace tensord::kernels
