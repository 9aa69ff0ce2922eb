// Products of halves, summed in float32. Where few rows or columns meet a large matrix, a weight for example, the large
// matrix is read in place: a float32 copy of it would go to memory and back.
#include <algorithm>
#include <type_traits>
#include <vector>

#include "core/base/parallel.h"
#include "kernels/base/half_rows.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/product.h"
#include "kernels/gemm/transpose.h"
#include "kernels/onednn/bf16_product.h"

namespace tensord::kernels {
namespace {

constexpr int64_t kBlockNumbers = 32 * 1024;  // numbers of the large matrix that stay in the L2 cache
constexpr int64_t kMaxHalfColumns = 64;       // with more, the conversion is cheap beside the product
constexpr int64_t kMaxVectors = 8;            // up to this many, multiplies the matrix with one at a time
constexpr double kNsPerMultiply = 0.015;

// Row-major, in memory of its own.
struct Wide {
  Wide(int64_t rows, int64_t cols)
      : tensor(Tensor::empty(Dims{rows, cols}, DType::kFloat32)), matrix{tensor.raw_data(), rows, cols, cols, 1} {}
  float* row(int64_t r) const { return static_cast<float*>(matrix.data) + r * matrix.cols; }
  Tensor tensor;
  Matrix matrix;
};

template <class T>
T* element(const Matrix& m, int64_t row, int64_t column = 0) {
  return static_cast<T*>(m.data) + row * m.row_stride + column * m.col_stride;
}

bool is_turned(const Matrix& m) { return m.col_stride != 1 && m.row_stride == 1; }

template <class T>
void widen_line(const Matrix& from, int64_t row, float* to) {
  const T* at = element<T>(from, row);
  if (from.col_stride == 1) return widen_row(at, to, from.cols);
  for (int64_t i = 0; i < from.cols; ++i) to[i] = at[i * from.col_stride];
}

template <class T>
void narrow_line(const float* from, const Matrix& to, int64_t row) {
  T* at = element<T>(to, row);
  if (to.col_stride == 1) return narrow_row(from, at, to.cols);
  for (int64_t i = 0; i < to.cols; ++i) at[i * to.col_stride] = from[i];
}

template <class T>
void widen_lines(const Matrix& from, const Wide& to) {
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(from.cols, 1));
  parallel_for(from.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) widen_line<T>(from, r, to.row(r));
  });
}

template <class T>
void narrow_lines(const Wide& from, const Matrix& to) {
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(to.cols, 1));
  parallel_for(to.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) narrow_line<T>(from.row(r), to, r);
  });
}

// A row-major copy, which reads the source in the order of its memory and has zeros in further columns.
template <class T>
Wide widened(const Matrix& from, int64_t columns) {
  const Wide out(from.rows, columns);
  for (int64_t r = 0; columns > from.cols && r < from.rows; ++r)
    std::fill(out.row(r) + from.cols, out.row(r + 1), 0.0f);
  if (!is_turned(from)) {
    widen_lines<T>(from, out);
    return out;
  }
  const Wide turned(from.cols, from.rows);
  widen_lines<T>(from.transposed(), turned);
  transpose_floats(turned.row(0), from.rows, from.cols, from.rows, out.row(0), columns);
  return out;
}
template <class T>
Wide widened(const Matrix& from) {
  return widened<T>(from, from.cols);
}

// c = from, which has the layout of c or of its transpose, and possibly further columns.
template <class T>
void narrow_into(const Wide& from, const Matrix& c, bool is_transposed) {
  const Matrix target = is_transposed ? c.transposed() : c;
  if (!is_turned(target)) return narrow_lines<T>(from, target);
  const Wide turned(target.cols, target.rows);
  transpose_floats(from.row(0), from.matrix.cols, target.rows, target.cols, turned.row(0), target.rows);
  narrow_lines<T>(turned, target.transposed());
}

// The sums that a product is added to.
template <class T>
Wide start(const Matrix& c, double beta, int64_t columns) {
  if (beta == 0) return Wide(c.rows, columns);
  const Wide out = widened<T>(c, columns);
  float* const sums = out.row(0);
  for (int64_t i = 0; i < c.rows * columns; ++i) sums[i] *= static_cast<float>(beta);
  return out;
}

// A large `a`, row-major except for gaps between rows: each block of it gives the sums of some rows.
template <class T>
void multiply_by_rows(double alpha, const Matrix& a, const Matrix& b, double beta, const Matrix& c) {
  constexpr int64_t kRows = 12, kDepth = 512,
                    kLanes = 16;  // whole tiles on every processor; both in the L1 cache
  const int64_t columns = (b.cols + kLanes - 1) / kLanes * kLanes;
  const Wide right = widened<T>(b, columns), sums = start<T>(c, beta, columns);
  const double block_ns = kNsPerMultiply * static_cast<double>(kRows * a.cols) * static_cast<double>(b.cols + 4);
  parallel_for_cost((a.rows + kRows - 1) / kRows, block_ns, [&](int64_t begin, int64_t end) {
    const Wide left(kRows, kDepth);
    const int64_t last = std::min(a.rows, end * kRows);
    for (int64_t first = begin * kRows; first < last; first += kRows) {
      const int64_t rows = std::min(kRows, last - first);
      for (int64_t k = 0; k < a.cols; k += kDepth) {
        const int64_t depth = std::min(kDepth, a.cols - k);
        const Matrix part{element<T>(a, first, k), rows, depth, a.row_stride, a.col_stride};
        for (int64_t r = 0; r < rows; ++r) widen_line<T>(part, r, left.row(r));
        const ProductShape shape{rows, columns, depth, kDepth, 1, columns, 1, columns, alpha, k > 0 || beta != 0};
        multiply(shape, left.row(0), right.row(k), sums.row(first), 0, rows, thread_product_scratch<float>());
      }
    }
  });
  narrow_into<T>(sums, c, false);
}

// A large `a` that is dense along the depth of the product: each block of it adds to the sums of all columns.
template <class T>
void multiply_by_depth(double alpha, const Matrix& a, const Matrix& b, double beta, const Matrix& c) {
  const Matrix right = a.transposed(), out = c.transposed();
  const Wide left = widened<T>(b), sums = start<T>(out, beta, out.cols);
  const double column_ns = kNsPerMultiply * static_cast<double>(a.cols) * static_cast<double>(b.cols + 4);
  constexpr int64_t kColumns = 64;  // whole vectors on every processor
  parallel_for_cost((right.cols + kColumns - 1) / kColumns, column_ns * kColumns, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kColumns, columns = std::min(right.cols, end * kColumns) - first;
    const int64_t steps = std::clamp<int64_t>(kBlockNumbers / columns, 8, right.rows < 8 ? 8 : right.rows);
    const Wide block(steps, columns);
    for (int64_t k = 0; k < right.rows; k += steps) {
      const int64_t count = std::min(steps, right.rows - k);
      for (int64_t i = 0; i < count; ++i) widen_row(element<T>(right, k + i, first), block.row(i), columns);
      const ProductShape shape{b.cols, columns, count, 1, b.cols, columns, 1, out.cols, alpha, k > 0 || beta != 0};
      multiply(shape, left.row(k), block.row(0), sums.row(0) + first, 0, b.cols, thread_product_scratch<float>());
    }
  });
  narrow_into<T>(sums, out, false);
}

// A few vectors times a large `a`, whose elements are converted anew for each of them.
template <class T>
bool try_half_gemv(double alpha, const Matrix& a, const Matrix& b, double beta, const Matrix& c) {
  const bool has_rows = a.col_stride == 1 || a.cols == 1;
  if (alpha != 1 || beta != 0 || !(has_rows || is_turned(a))) return false;
  const Wide x = widened<T>(b.transposed()), y(b.cols, a.rows);
  const int64_t rows = b.cols == 1 || !has_rows ? a.rows : std::max<int64_t>(4, kBlockNumbers / a.cols);
  for (int64_t first = 0; first < a.rows; first += rows) {
    const int64_t count = std::min(rows, a.rows - first);
    for (int64_t j = 0; j < b.cols; ++j) {
      float* const to = y.row(j) + first;
      const bool is_done = has_rows
                               ? gemv_rows(dtype_of<T>, element<T>(a, first), a.row_stride, x.row(j), to, count, a.cols)
                               : gemv_columns(dtype_of<T>, a.data, a.col_stride, x.row(j), to, count, a.cols);
      if (!is_done) return false;
    }
  }
  narrow_into<T>(y, c, true);
  return true;
}

// In memory order.
template <class T>
Wide widened_as_it_lies(const Matrix& from) {
  const bool turns = is_turned(from);
  Wide out(turns ? from.cols : from.rows, turns ? from.rows : from.cols);
  widen_lines<T>(turns ? from.transposed() : from, out);
  if (turns) out.matrix = out.matrix.transposed();
  return out;
}

template <class T>
void multiply_wide(double alpha, const Matrix& a, const Matrix& b, double beta, const Matrix& c) {
  if (is_turned(c)) return multiply_wide<T>(alpha, b.transposed(), a.transposed(), beta, c.transposed());
  const Wide left = widened_as_it_lies<T>(a), right = widened_as_it_lies<T>(b), sums = start<T>(c, beta, c.cols);
  gemm(DType::kFloat32, alpha, left.matrix, right.matrix, beta != 0 ? 1 : 0, sums.matrix);
  narrow_lines<T>(sums, c);
}

// By the processor's own products of bfloat16.
bool try_dot_products(double alpha, const Matrix& a, const Matrix& b, double beta, const Matrix& c) {
  if (alpha != 1 || (beta != 0 && beta != 1)) return false;
  if (is_turned(c)) return try_dot_products(alpha, b.transposed(), a.transposed(), beta, c.transposed());
  if (c.col_stride != 1) return false;
  return try_bf16_product({c.rows, c.cols, a.cols, a.data, b.data, c.data, a.row_stride, a.col_stride, b.row_stride,
                           b.col_stride, c.row_stride, beta != 0});
}

template <class T>
void multiply_halves(double alpha, const Matrix& a, const Matrix& b, double beta, const Matrix& c) {
  if (a.rows < b.cols) return multiply_halves<T>(alpha, b.transposed(), a.transposed(), beta, c.transposed());
  if (b.cols <= kMaxVectors && try_half_gemv<T>(alpha, a, b, beta, c)) return;
  if (std::is_same_v<T, BFloat16> && try_dot_products(alpha, a, b, beta, c)) return;
  if (b.cols > kMaxHalfColumns) return multiply_wide<T>(alpha, a, b, beta, c);
  is_turned(a) ? multiply_by_depth<T>(alpha, a, b, beta, c) : multiply_by_rows<T>(alpha, a, b, beta, c);
}

}  // namespace

void half_gemm(DType dtype, double alpha, const Matrix& a, const Matrix& b, double beta, const Matrix& c) {
  dtype == DType::kFloat16 ? multiply_halves<Half>(alpha, a, b, beta, c)
                           : multiply_halves<BFloat16>(alpha, a, b, beta, c);
}

}  // namespace tensord::kernels
