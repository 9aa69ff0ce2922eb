// Recursive: factors the upper half, solves the rows below with it, and subtracts their products from the rest.
#include "kernels/linalg/cholesky.h"

#include <algorithm>
#include <cmath>

#include "kernels/linalg/linalg.h"

namespace tensord::kernels::linalg {
namespace {

constexpr int64_t kSmall = 48;

template <class T>
T* at(const Matrix& a, int64_t row, int64_t column) {
  return static_cast<T*>(a.data) + row * a.row_stride + column * a.col_stride;
}

template <class T>
Matrix part(const Matrix& a, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  return {at<T>(a, row, column), rows, columns, a.row_stride, a.col_stride};
}

// Copies into contiguous rows, so that sums run along memory.
template <class T>
int32_t factor_small(const Matrix& a) {
  T l[kSmall][kSmall];
  const int64_t n = a.rows;
  int32_t bad = 0;
  for (int64_t r = 0; r < n && bad == 0; ++r) {
    for (int64_t c = 0; c <= r; ++c) {
      T sum = *at<T>(a, r, c);
      for (int64_t k = 0; k < c; ++k) sum -= l[r][k] * l[c][k];
      if (c < r) {
        l[r][c] = sum / l[c][c];
      } else if (sum <= T(0)) {
        l[r][r] = sum;
        bad = static_cast<int32_t>(r + 1);
      } else {  // also true for NaN, which then spreads through the factor
        l[r][r] = std::sqrt(sum);
      }
    }
    for (int64_t c = 0; c <= r; ++c) *at<T>(a, r, c) = l[r][c];
  }
  return bad;
}

// A -= X Xᵀ, at least in the blocks that contain part of the lower triangle.
template <class T>
void subtract_square(const Matrix& a, const Matrix& x) {
  constexpr int64_t kStrip = 256;
  for (int64_t row = 0; row < a.rows; row += kStrip) {
    const int64_t height = std::min(kStrip, a.rows - row);
    gemm(dtype_of<T>, -1, part<T>(x, row, height, 0, x.cols), part<T>(x, 0, row + height, 0, x.cols).transposed(), 1,
         part<T>(a, row, height, 0, row + height));
  }
}

template <class T>
int32_t factor(const Matrix& a) {
  const int64_t n = a.rows;
  if (n <= kSmall) return factor_small<T>(a);
  const int64_t top = n / 2, below = n - top;
  const Matrix corner = part<T>(a, 0, top, 0, top), left = part<T>(a, top, below, 0, top);
  if (const int32_t bad = factor<T>(corner); bad != 0) return bad;
  solve_triangular(dtype_of<T>, corner, left.transposed(), /*is_upper=*/false, /*has_unit_diagonal=*/false);
  const Matrix rest = part<T>(a, top, below, top, below);
  subtract_square<T>(rest, left);
  const int32_t bad = factor<T>(rest);
  return bad == 0 ? 0 : bad + static_cast<int32_t>(top);
}

template <class T>
int32_t factor_whole(const Matrix& a) {
  const int32_t bad = factor<T>(a);
  for (int64_t c = 1; c < a.cols; ++c) {
    for (int64_t r = 0; r < c; ++r) *at<T>(a, r, c) = T(0);
  }
  return bad;
}

}  // namespace

int32_t factor_cholesky(DType dtype, const Matrix& a) {
  return dtype == DType::kFloat32 ? factor_whole<float>(a) : factor_whole<double>(a);
}

}  // namespace tensord::kernels::linalg
