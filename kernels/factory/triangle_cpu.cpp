#include "kernels/factory/triangle.h"

#include <algorithm>

namespace tensord::kernels {

Tensor indices_of_triangle(int64_t rows, int64_t columns, int64_t offset, bool is_lower) {
  checked_numel(Dims{rows, columns, 2});
  const auto inside = [&](int64_t r) {
    // Columns c of this row with c - r <= offset (lower) or >= offset (upper), clamped without overflow.
    const int64_t edge = offset > columns ? columns + 1 : offset < -rows ? -rows - 1 : offset;
    const int64_t begin = is_lower ? 0 : std::clamp<int64_t>(r + edge, 0, columns);
    const int64_t end = is_lower ? std::clamp<int64_t>(r + edge + 1, 0, columns) : columns;
    return std::pair(begin, end);
  };
  int64_t count = 0;
  for (int64_t r = 0; r < rows; ++r) count += inside(r).second - inside(r).first;
  const Tensor out = Tensor::empty(Dims{2, count}, DType::kInt64);
  int64_t* row = out.data<int64_t>();
  int64_t* column = row + count;
  for (int64_t r = 0; r < rows; ++r) {
    const auto [begin, end] = inside(r);
    row = std::fill_n(row, end - begin, r);
    for (int64_t c = begin; c < end; ++c) *column++ = c;
  }
  return out;
}

}  // namespace tensord::kernels
