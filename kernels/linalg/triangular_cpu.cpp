// Substitution in blocks: the triangles on the diagonal by tiles of columns, the blocks beside them by products.
#include <algorithm>

#include "core/base/parallel.h"
#include "kernels/linalg/linalg.h"

namespace tensord::kernels::linalg {
namespace {

constexpr int64_t kBlock = 64, kTileColumns = 32;

template <class T>
T& element(const Matrix& m, int64_t row, int64_t column) {
  return static_cast<T*>(m.data)[row * m.row_stride + column * m.col_stride];
}

Matrix part_of(const Matrix& m, DType dtype, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  auto* first =
      static_cast<char*>(m.data) + (row * m.row_stride + column * m.col_stride) * static_cast<int64_t>(size_of(dtype));
  return {first, rows, columns, m.row_stride, m.col_stride};
}

// A triangle of up to kBlock rows, packed by rows, its diagonal apart. In an upper triangle rows and columns are
// counted from the end, which makes it a lower one.
template <class T>
struct Triangle {
  Triangle(const Matrix& a, bool is_upper, bool has_unit_diagonal) : size(a.rows), is_turned(is_upper) {
    for (int64_t r = 0; r < size; ++r) {
      for (int64_t c = 0; c < r; ++c) below[r][c] = element<T>(a, at(r), at(c));
      diagonal[r] = has_unit_diagonal ? T(1) : element<T>(a, at(r), at(r));
    }
  }
  int64_t at(int64_t row) const { return is_turned ? size - 1 - row : row; }

  int64_t size;
  bool is_turned;
  T below[kBlock][kBlock], diagonal[kBlock];
};

template <class T>
void substitute(const Triangle<T>& triangle, const Matrix& x, int64_t begin, int64_t end) {
  T tile[kBlock][kTileColumns];
  const int64_t columns = end - begin;
  for (int64_t r = 0; r < triangle.size; ++r) {
    for (int64_t c = 0; c < columns; ++c) tile[r][c] = element<T>(x, triangle.at(r), begin + c);
    std::fill(tile[r] + columns, tile[r] + kTileColumns, T(0));
  }
  for (int64_t r = 0; r < triangle.size; ++r) {
    for (int64_t before = 0; before < r; ++before) {
      const T factor = triangle.below[r][before];
      for (int64_t c = 0; c < kTileColumns; ++c) tile[r][c] -= factor * tile[before][c];
    }
    for (int64_t c = 0; c < kTileColumns; ++c) tile[r][c] /= triangle.diagonal[r];
    for (int64_t c = 0; c < columns; ++c) element<T>(x, triangle.at(r), begin + c) = tile[r][c];
  }
}

template <class T>
void solve(const Matrix& a, const Matrix& x, bool is_upper, bool has_unit_diagonal) {
  const int64_t n = a.rows, blocks = (n + kBlock - 1) / kBlock, tiles = (x.cols + kTileColumns - 1) / kTileColumns;
  for (int64_t step = 0; step < blocks; ++step) {
    const int64_t begin = (is_upper ? blocks - 1 - step : step) * kBlock, size = std::min(kBlock, n - begin);
    const Triangle<T> triangle(part_of(a, dtype_of<T>, begin, size, begin, size), is_upper, has_unit_diagonal);
    const Matrix solved = part_of(x, dtype_of<T>, begin, size, 0, x.cols);
    const double tile_ns = 0.1 * static_cast<double>(size * size * kTileColumns);
    parallel_for_cost(tiles, tile_ns, [&](int64_t first, int64_t last) {
      for (int64_t tile = first; tile < last; ++tile) {
        substitute(triangle, solved, tile * kTileColumns, std::min(x.cols, (tile + 1) * kTileColumns));
      }
    });
    const int64_t rest = is_upper ? 0 : begin + size, rest_size = is_upper ? begin : n - rest;
    if (rest_size == 0) continue;
    gemm(dtype_of<T>, -1, part_of(a, dtype_of<T>, rest, rest_size, begin, size), solved, 1,
         part_of(x, dtype_of<T>, rest, rest_size, 0, x.cols));
  }
}

}  // namespace

void solve_triangular(DType dtype, const Matrix& a, const Matrix& x, bool is_upper, bool has_unit_diagonal) {
  if (a.rows == 0 || x.cols == 0) return;
  if (dtype == DType::kFloat32)
    solve<float>(a, x, is_upper, has_unit_diagonal);
  else
    solve<double>(a, x, is_upper, has_unit_diagonal);
}

}  // namespace tensord::kernels::linalg
