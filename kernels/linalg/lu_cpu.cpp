// Recursive: factors the left half of the columns, updates the right half by a product, then factors it.
#include "kernels/linalg/lu.h"

#include <algorithm>
#include <cmath>

#include "kernels/linalg/linalg.h"

namespace tensord::kernels::linalg {
namespace {

constexpr int64_t kNarrow = 16;

template <class T>
T* column(const Matrix& a, int64_t c) {
  return static_cast<T*>(a.data) + c * a.col_stride;
}

template <class T>
Matrix part(const Matrix& a, int64_t row, int64_t rows, int64_t first, int64_t columns) {
  return {column<T>(a, first) + row, rows, columns, 1, a.col_stride};
}

template <class T>
void exchange_rows(const Matrix& a, const int32_t* pivots, int64_t begin, int64_t end) {
  for (int64_t c = 0; c < a.cols; ++c) {
    T* values = column<T>(a, c);
    for (int64_t i = begin; i < end; ++i) std::swap(values[i], values[pivots[i] - 1]);
  }
}

template <class T>
int64_t row_of_largest(const T* values, int64_t begin, int64_t end) {
  int64_t best = begin;
  for (int64_t i = begin + 1; i < end; ++i) {
    if (std::abs(values[i]) > std::abs(values[best])) best = i;
  }
  return best;
}

// Column by column.
template <class T>
int32_t factor_narrow(const Matrix& a, int32_t* pivots) {
  int32_t first_zero = 0;
  const int64_t steps = std::min(a.rows, a.cols);
  for (int64_t j = 0; j < steps; ++j) {
    T* own = column<T>(a, j);
    pivots[j] = static_cast<int32_t>(row_of_largest(own, j, a.rows) + 1);
    exchange_rows<T>(a, pivots, j, j + 1);
    if (own[j] == T(0)) {
      if (first_zero == 0) first_zero = static_cast<int32_t>(j + 1);
    } else {
      for (int64_t i = j + 1; i < a.rows; ++i) own[i] /= own[j];
    }
    for (int64_t c = j + 1; c < a.cols; ++c) {
      T* values = column<T>(a, c);
      const T factor = values[j];
      for (int64_t i = j + 1; i < a.rows; ++i) values[i] -= own[i] * factor;
    }
  }
  return first_zero;
}

template <class T>
int32_t factor(const Matrix& a, int32_t* pivots) {
  const int64_t steps = std::min(a.rows, a.cols);
  if (a.cols <= kNarrow || steps <= 1) return factor_narrow<T>(a, pivots);
  const int64_t left = std::min(steps, a.cols / 2), right = a.cols - left, below = a.rows - left;
  int32_t first_zero = factor<T>(part<T>(a, 0, a.rows, 0, left), pivots);
  const Matrix rest = part<T>(a, 0, a.rows, left, right);
  exchange_rows<T>(rest, pivots, 0, left);
  const Matrix top = part<T>(a, 0, left, left, right);
  solve_triangular(dtype_of<T>, part<T>(a, 0, left, 0, left), top, /*is_upper=*/false, /*has_unit_diagonal=*/true);
  if (below == 0) return first_zero;
  const Matrix corner = part<T>(a, left, below, left, right);
  gemm(dtype_of<T>, -1, part<T>(a, left, below, 0, left), top, 1, corner);
  int32_t* later = pivots + left;
  const int32_t zero = factor<T>(corner, later);
  if (first_zero == 0 && zero != 0) first_zero = zero + static_cast<int32_t>(left);
  exchange_rows<T>(part<T>(a, left, below, 0, left), later, 0, steps - left);
  for (int64_t i = 0; i < steps - left; ++i) later[i] += static_cast<int32_t>(left);
  return first_zero;
}

}  // namespace

int32_t factor_lu(DType dtype, const Matrix& a, int32_t* pivots) {
  return dtype == DType::kFloat32 ? factor<float>(a, pivots) : factor<double>(a, pivots);
}

}  // namespace tensord::kernels::linalg
