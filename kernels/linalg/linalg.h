#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "core/ops/op.h"
#include "core/ops/run.h"
#include "kernels/gemm/gemm.h"

// Shared by the operators of linear algebra. A tensor of at least two dimensions is a batch of matrices (the last two
// dimensions); results are column-major, as LAPACK writes them and PyTorch returns them.
namespace tensord::kernels::linalg {

// Throws unless `x` is float32 or float64, or complex, as PyTorch words it: linalg.inv: Low precision dtypes not
// supported …
void check_real(std::string_view op, const Tensor& x);
// float32, float64, complex64 or complex128: the dtypes of LAPACK.
inline bool has_lapack_dtype(const Tensor& x) {
  return x.dtype() == DType::kFloat32 || x.dtype() == DType::kFloat64 || is_complex(x.dtype());
}
void check_matrix(std::string_view op, const Tensor& x, std::string_view name = "A");
// Also whether the matrices are square.
void check_square(std::string_view op, const Tensor& x, std::string_view name = "A");
// Whether A X = B, or X A = B, has shapes that fit.
void check_equation(std::string_view op, const Tensor& a, const Tensor& b, bool is_left);
void check_same_dtype(std::string_view op, const Tensor& a, const Tensor& b);

inline int64_t rows_of(const Tensor& x) { return x.sizes()[static_cast<size_t>(x.ndim() - 2)]; }
inline int64_t columns_of(const Tensor& x) { return x.sizes().back(); }
// The sizes before the last two, and before them followed by others.
Dims batch_of(const Tensor& x);
Dims with(Dims batch, std::initializer_list<int64_t> sizes);
// The number of matrices.
int64_t count_of(const Dims& batch);

// A result of these sizes that lies column by column.
ops::TensorMeta column_major(const Dims& sizes, const Tensor& like);
ops::TensorMeta row_major(const Dims& sizes, const Tensor& like);
ops::TensorMeta row_major(const Dims& sizes, DType dtype, const Tensor& like);

// Matrix number `index` of a tensor whose batch is broadcast to `batch`.
Matrix matrix_at(const Tensor& x, const Dims& batch, int64_t index);

// A view with the last two dimensions exchanged.
Tensor transposed(const Tensor& x);

// The results of an operator, which are all tensors.
template <size_t kCount, class... A>
std::array<Tensor, kCount> call_for(const char* op_name, const A&... arguments) {
  const ops::Op& op = ops::get_op(op_name);
  const std::vector<ops::Value> results = ops::run(op, ops::bind(op, {ops::Value(arguments)...}));
  std::array<Tensor, kCount> tensors;
  for (size_t i = 0; i < kCount; ++i) tensors[i] = results[i].to_tensor();
  return tensors;
}

// The code of svd for a matrix with infinities or NaN.
inline constexpr int32_t kNotFinite = -4;
// Throws PyTorch's error of the routine `op` for the first of `info`, a code for each matrix, that is not 0. Names the
// matrix when it is one of several. Does nothing for meta tensors.
void check_info(std::string_view op, const Tensor& info);

// Solves A X = B in place of B, matrix by matrix: A is triangular, and only that triangle is read.
void solve_triangular(DType dtype, const Matrix& a, const Matrix& x, bool is_upper, bool has_unit_diagonal);

}  // namespace tensord::kernels::linalg
