#include <dnnl.h>

#include <algorithm>
#include <cstring>

#include "core/base/parallel.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/product.h"

namespace tensord::kernels {
namespace {

// An operand of a BLAS call: the leading dimension, and whether the memory holds the transpose.
struct BlasOperand {
  const void* data;
  int64_t ld;
  bool is_transposed;
};

bool is_row_major(const Matrix& m) {
  return (m.col_stride == 1 || m.cols <= 1) && (m.row_stride >= std::max<int64_t>(m.cols, 1) || m.rows <= 1);
}

// Whether BLAS can read the matrix in place; fills `out` if so.
bool as_blas(const Matrix& m, BlasOperand& out) {
  if (is_row_major(m)) {
    out = {m.data, m.rows <= 1 ? std::max<int64_t>(m.cols, 1) : m.row_stride, false};
    return true;
  }
  if (is_row_major(m.transposed())) {
    out = {m.data, m.cols <= 1 ? std::max<int64_t>(m.rows, 1) : m.col_stride, true};
    return true;
  }
  return false;
}

template <class From, class To>
void copy_matrix(const Matrix& from, const Matrix& to) {
  const auto* source = static_cast<const From*>(from.data);
  auto* target = static_cast<To*>(to.data);
  parallel_for(from.rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(from.cols, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t r = begin; r < end; ++r) {
                   for (int64_t c = 0; c < from.cols; ++c) {
                     target[r * to.row_stride + c * to.col_stride] =
                         static_cast<To>(source[r * from.row_stride + c * from.col_stride]);
                   }
                 }
               });
}

// A row-major matrix in memory of its own.
struct OwnedMatrix {
  OwnedMatrix(int64_t rows, int64_t cols, DType dtype)
      : tensor(Tensor::empty(Dims{rows, cols}, dtype)), matrix{tensor.raw_data(), rows, cols, cols, 1} {}
  Tensor tensor;
  Matrix matrix;
};

template <class T>
void scale(T beta, const Matrix& c) {
  auto* p = static_cast<T*>(c.data);
  for (int64_t r = 0; r < c.rows; ++r) {
    for (int64_t j = 0; j < c.cols; ++j) {
      T& out = p[r * c.row_stride + j * c.col_stride];
      out = beta == T(0) ? T(0) : static_cast<T>(beta * out);
    }
  }
}

// Calls `multiply` for parts of the rows, or of the columns where there are fewer rows. The parts do not change an
// element's sum.
template <class T>
void multiply_parts(const ProductShape& shape, const T* left, const T* right, T* out) {
  constexpr int64_t kRowStep = 24, kColumnStep = 64;  // whole tiles of every instruction set
  constexpr double kNsPerMultiply = 0.04;
  const bool by_columns = shape.rows < shape.columns;  // each part packs what it reads of the right matrix
  const int64_t step = by_columns ? kColumnStep : kRowStep, size = by_columns ? shape.columns : shape.rows;
  const int64_t steps = (size + step - 1) / step;
  const double step_ns = kNsPerMultiply * static_cast<double>(shape.rows * shape.columns * shape.depth / steps);
  const int parts = parallel_parts(steps, step_ns, thread_budget());
  parallel_run(parts, [&](int part) {
    const int64_t begin = std::min(size, steps * part / parts * step);
    const int64_t end = std::min(size, steps * (part + 1) / parts * step);
    T* scratch = thread_product_scratch<T>();
    if (!by_columns) return multiply(shape, left, right, out, begin, end, scratch);
    ProductShape columns = shape;
    columns.columns = end - begin;
    multiply(columns, left, right + begin * shape.right_column, out + begin, 0, shape.rows, scratch);
  });
}

// Operands are used in place, whatever their strides.
template <class T>
void tiled_gemm(T alpha, const Matrix& a, const Matrix& b, T beta, const Matrix& c) {
  const bool is_dense = c.col_stride == 1 || c.cols == 1, is_turned_dense = c.row_stride == 1 || c.rows == 1;
  if (!is_dense && !is_turned_dense) {
    OwnedMatrix copy(c.rows, c.cols, dtype_of<T>);
    if (beta != 0) copy_matrix<T, T>(c, copy.matrix);
    tiled_gemm(alpha, a, b, beta, copy.matrix);
    return copy_matrix<T, T>(copy.matrix, c);
  }
  // A result of one column is a row of the transposed product, which needs no packing.
  if (!is_dense || (is_turned_dense && c.cols == 1 && c.rows > 1)) {
    return tiled_gemm(alpha, b.transposed(), a.transposed(), beta, c.transposed());
  }
  if (beta != 0 && beta != 1) scale<T>(beta, c);
  const ProductShape shape{c.rows,       c.cols,       a.cols,       a.row_stride, a.col_stride,
                           b.row_stride, b.col_stride, c.row_stride, alpha,        beta != 0};
  multiply_parts(shape, static_cast<const T*>(a.data), static_cast<const T*>(b.data), static_cast<T*>(c.data));
}

void onednn_gemm(float alpha, const Matrix& a, const Matrix& b, float beta, const Matrix& c) {
  if (!is_row_major(c)) {
    if (is_row_major(c.transposed())) return onednn_gemm(alpha, b.transposed(), a.transposed(), beta, c.transposed());
    OwnedMatrix copy(c.rows, c.cols, DType::kFloat32);
    if (beta != 0) copy_matrix<float, float>(c, copy.matrix);
    onednn_gemm(alpha, a, b, beta, copy.matrix);
    return copy_matrix<float, float>(copy.matrix, c);
  }
  BlasOperand x, y;
  if (!as_blas(a, x)) {
    OwnedMatrix copy(a.rows, a.cols, DType::kFloat32);
    copy_matrix<float, float>(a, copy.matrix);
    return onednn_gemm(alpha, copy.matrix, b, beta, c);
  }
  if (!as_blas(b, y)) {
    OwnedMatrix copy(b.rows, b.cols, DType::kFloat32);
    copy_matrix<float, float>(b, copy.matrix);
    return onednn_gemm(alpha, a, copy.matrix, beta, c);
  }
  const int64_t ldc = c.rows <= 1 ? std::max<int64_t>(c.cols, 1) : c.row_stride;
  const dnnl_status_t status =
      dnnl_sgemm(x.is_transposed ? 'T' : 'N', y.is_transposed ? 'T' : 'N', c.rows, c.cols, a.cols, alpha,
                 static_cast<const float*>(x.data), x.ld, static_cast<const float*>(y.data), y.ld, beta,
                 static_cast<float*>(c.data), ldc);
  check_internal(status == dnnl_success, "sgemm failed with status ", static_cast<int>(status));
}

// One row of f32 times a matrix that is row- or column-major: bound by reading b once.
bool try_gemv(float alpha, const Matrix& a, const Matrix& b, float beta, const Matrix& c) {
  if (alpha != 1 || beta != 0) return false;
  if (c.rows != 1) {
    if (c.cols != 1) return false;
    return try_gemv(alpha, b.transposed(), a.transposed(), beta, c.transposed());
  }
  BlasOperand y;
  if (!(a.col_stride == 1 || a.cols <= 1) || !(c.col_stride == 1 || c.cols <= 1) || !as_blas(b, y)) return false;
  const auto* x = static_cast<const float*>(a.data);
  const auto* w = static_cast<const float*>(y.data);
  auto* out = static_cast<float*>(c.data);
  if (y.is_transposed) {
    gemv_rows(w, y.ld, x, out, b.cols, b.rows);
  } else {
    gemv_columns(w, y.ld, x, out, b.cols, b.rows);
  }
  return true;
}

void float_gemm(float alpha, const Matrix& a, const Matrix& b, float beta, const Matrix& c) {
  if (try_gemv(alpha, a, b, beta, c) || try_narrow_gemm(alpha, a, b, beta, c)) return;
  uses_sgemm() ? onednn_gemm(alpha, a, b, beta, c) : tiled_gemm(alpha, a, b, beta, c);
}

// Integer arithmetic wraps. Walks the rows of b in order, so that the inner loop is dense.
template <class T>
void integer_gemm(T alpha, const Matrix& a, const Matrix& b, T beta, const Matrix& c) {
  using U = std::make_unsigned_t<T>;
  const auto* pa = static_cast<const T*>(a.data);
  const auto* pb = static_cast<const T*>(b.data);
  auto* pc = static_cast<T*>(c.data);
  const int64_t work = std::max<int64_t>(1, a.cols * c.cols);
  parallel_for(c.rows, std::max<int64_t>(1, 32768 / work), [&](int64_t begin, int64_t end) {
    std::vector<uint64_t> sums(static_cast<size_t>(c.cols));
    for (int64_t i = begin; i < end; ++i) {
      std::fill(sums.begin(), sums.end(), 0);
      for (int64_t k = 0; k < a.cols; ++k) {
        const auto x = static_cast<uint64_t>(pa[i * a.row_stride + k * a.col_stride]);
        const T* row = pb + k * b.row_stride;
        for (int64_t j = 0; j < c.cols; ++j) sums[j] += x * static_cast<uint64_t>(row[j * b.col_stride]);
      }
      for (int64_t j = 0; j < c.cols; ++j) {
        T& out = pc[i * c.row_stride + j * c.col_stride];
        uint64_t value = static_cast<uint64_t>(alpha) * sums[j];
        if (beta != 0) value += static_cast<uint64_t>(beta) * static_cast<uint64_t>(out);
        out = static_cast<T>(static_cast<U>(value));
      }
    }
  });
}

}  // namespace

Matrix matrix_of(const Tensor& tensor, int64_t offset) {
  const int64_t ndim = tensor.ndim();
  auto* data = static_cast<char*>(tensor.raw_data()) + offset * static_cast<int64_t>(size_of(tensor.dtype()));
  return {data, tensor.sizes()[ndim - 2], tensor.sizes()[ndim - 1], tensor.strides()[ndim - 2],
          tensor.strides()[ndim - 1]};
}

bool uses_sgemm() {
  static const bool has_avx512 = (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core) == dnnl_cpu_isa_avx512_core;
  return has_avx512;
}

void gemm(DType dtype, double alpha, const Matrix& a, const Matrix& b, double beta, const Matrix& c) {
  if (c.rows == 0 || c.cols == 0) return;
  if (a.cols == 0) {
    return dispatch_all(dtype, "matmul", [&]<class T>() {
      if constexpr (!std::is_same_v<T, bool>) scale<T>(static_cast<T>(beta), c);
    });
  }
  switch (dtype) {
    case DType::kFloat32: return float_gemm(static_cast<float>(alpha), a, b, static_cast<float>(beta), c);
    case DType::kFloat64: return tiled_gemm<double>(alpha, a, b, beta, c);
    case DType::kFloat16:
    case DType::kBFloat16: return half_gemm(dtype, alpha, a, b, beta, c);
    default:
      dispatch_integral(dtype, "matmul",
                        [&]<class T>() { integer_gemm<T>(static_cast<T>(alpha), a, b, static_cast<T>(beta), c); });
  }
}

void start_product(const Tensor& from, const Tensor& c) {
  const bool is_row = from.ndim() == 1 && from.is_contiguous() && c.is_contiguous() && from.dtype() == c.dtype() &&
                      c.ndim() >= 1 && from.numel() == c.sizes().back() && c.numel() > 0;
  if (!is_row) return c.copy_from(from);
  const size_t bytes = from.size_bytes();
  const auto* source = static_cast<const char*>(from.raw_data());
  auto* target = static_cast<char*>(c.raw_data());
  constexpr double kNsPerByte = 0.1;
  parallel_for_cost(c.numel() / from.numel(), kNsPerByte * static_cast<double>(bytes), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) std::memcpy(target + static_cast<size_t>(i) * bytes, source, bytes);
  });
}

void run_batches(int64_t count, int64_t work, const std::function<void(int64_t)>& product) {
  constexpr int64_t kLargeWork = int64_t{1} << 24;
  if (count >= thread_budget() && work < kLargeWork) {
    parallel_for(count, std::max<int64_t>(1, 32768 / std::max<int64_t>(work, 1)), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) product(i);
    });
  } else {
    for (int64_t i = 0; i < count; ++i) product(i);
  }
}

void batched_gemm(double alpha, const Tensor& a, const Tensor& b, double beta, const Tensor& c) {
  run_batches(c.sizes()[0], c.sizes()[1] * c.sizes()[2] * a.sizes()[2], [&](int64_t i) {
    gemm(c.dtype(), alpha, matrix_of(a, i * a.strides()[0]), matrix_of(b, i * b.strides()[0]), beta,
         matrix_of(c, i * c.strides()[0]));
  });
}

}  // namespace tensord::kernels
