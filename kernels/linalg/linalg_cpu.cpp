#include "kernels/linalg/linalg.h"

#include <utility>

#include "kernels/view/view.h"
#include "ops/view.h"

namespace tensord::kernels::linalg {

void check_real(std::string_view op, const Tensor& x) {
  const DType dtype = x.dtype();
  if (dtype == DType::kFloat32 || dtype == DType::kFloat64 || is_complex(dtype)) return;
  check(!is_floating(dtype), op, ": Low precision dtypes not supported. Got ", name_of(dtype));
  fail(ErrorCode::kInvalidArgument, op, ": Expected a floating point or complex tensor as input. Got ", name_of(dtype));
}

void check_matrix(std::string_view op, const Tensor& x, std::string_view name) {
  check(x.ndim() >= 2, op, ": The input tensor ", name, " must have at least 2 dimensions.");
}

void check_square(std::string_view op, const Tensor& x, std::string_view name) {
  check_matrix(op, x, name);
  check(rows_of(x) == columns_of(x), op, ": ", name, " must be batches of square matrices, but they are ", rows_of(x),
        " by ", columns_of(x), " matrices");
}

void check_equation(std::string_view op, const Tensor& a, const Tensor& b, bool is_left) {
  check((is_left ? rows_of(b) : columns_of(b)) == rows_of(a), op, ": Incompatible shapes of A and B for the equation ",
        is_left ? "AX = B" : "XA = B", " (", rows_of(a), "x", columns_of(a), " and ", rows_of(b), "x", columns_of(b),
        ")");
}

void check_same_dtype(std::string_view op, const Tensor& a, const Tensor& b) {
  check(a.dtype() == b.dtype(), op, ": Expected both tensors to have the same dtype, but found ", name_of(a.dtype()),
        " and ", name_of(b.dtype()), " instead");
}

Dims batch_of(const Tensor& x) { return Dims(x.sizes().span().first(x.sizes().size() - 2)); }

Dims with(Dims batch, std::initializer_list<int64_t> sizes) {
  for (const int64_t size : sizes) batch.push_back(size);
  return batch;
}

int64_t count_of(const Dims& batch) { return checked_numel(batch); }

ops::TensorMeta column_major(const Dims& sizes, const Tensor& like) {
  Dims turned = sizes;
  const size_t rank = sizes.size();
  std::swap(turned[rank - 1], turned[rank - 2]);
  Dims strides = contiguous_strides(turned);
  std::swap(strides[rank - 1], strides[rank - 2]);
  return {sizes, like.dtype(), strides, like.device()};
}

ops::TensorMeta row_major(const Dims& sizes, const Tensor& like) { return row_major(sizes, like.dtype(), like); }
ops::TensorMeta row_major(const Dims& sizes, DType dtype, const Tensor& like) {
  return {sizes, dtype, {}, like.device()};
}

Matrix matrix_at(const Tensor& x, const Dims& batch, int64_t index) {
  const size_t own = x.sizes().size() - 2, extra = batch.size() - own;
  int64_t offset = 0;
  for (size_t d = batch.size(); d-- > extra;) {
    const int64_t position = index % batch[d];
    index /= batch[d];
    if (x.sizes()[d - extra] != 1) offset += position * x.strides()[d - extra];
  }
  auto* first = static_cast<char*>(x.raw_data()) + offset * static_cast<int64_t>(size_of(x.dtype()));
  return {first, rows_of(x), columns_of(x), x.strides()[own], x.strides()[own + 1]};
}

namespace {

bool names(std::string_view op, std::string_view routine) { return op.find(routine) != std::string_view::npos; }

std::string reason_of(std::string_view op, int64_t code) {
  if (names(op, "inv")) {
    return concat("The diagonal element ", code,
                  " is zero, the inversion could not be completed because the input matrix is singular.");
  }
  if (names(op, "solve")) return "The solver failed because the input matrix is singular.";
  if (names(op, "cholesky")) {
    return concat(
        "The factorization could not be completed because the input is not positive-definite (the leading minor of "
        "order ",
        code, " is not positive-definite).");
  }
  if (names(op, "svd") && code == kNotFinite) {
    return "The algorithm failed to converge because the input matrix contained non-finite values.";
  }
  if (names(op, "svd") || names(op, "eig")) {
    return concat(
        "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated ",
        names(op, "svd") ? "singular values" : "eigenvalues", " (error code: ", code, ").");
  }
  if (names(op, "ldl")) return concat("D[", code, ",", code, "] is zero");
  if (names(op, "lstsq")) {
    return concat(
        "The least squares problem could not be solved because the input matrix does not have full rank (error code: ",
        code, ").");
  }
  return concat(
      "U[", code, ",", code,
      "] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the "
      "factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)");
}

}  // namespace

void check_info(std::string_view op, const Tensor& info) {
  if (info.is_meta()) return;
  const Tensor codes = info.to(Device{}).contiguous();
  const int32_t* code = codes.data<int32_t>();
  for (int64_t i = 0; i < codes.numel(); ++i) {
    if (code[i] == 0) continue;
    check_internal(code[i] > 0 || code[i] == kNotFinite, op, ": LAPACK refuses argument ", -code[i]);
    const std::string where = info.ndim() > 0 ? concat("(Batch element ", i, "): ") : "";
    fail(ErrorCode::kInvalidArgument, op, ": ", where, reason_of(op, code[i]));
  }
}

Tensor transposed(const Tensor& x) { return ops::transpose(x, -2, -1); }

}  // namespace tensord::kernels::linalg
