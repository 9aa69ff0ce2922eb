#include "kernels/factory/triangle.h"

#include <algorithm>

#include "core/base/cancellation.h"

namespace tensord::kernels {
namespace {

using Wide = __int128;

// The sum of clamp(j, 0, columns) over all j <= last.
Wide clamped_sum(Wide last, Wide columns) {
  if (last <= 0) return 0;
  const Wide ramp = std::min(last, columns);
  return ramp * (ramp + 1) / 2 + (last - ramp) * columns;
}

// How many columns c of the rows have c - r < edge.
int64_t count_below(int64_t rows, int64_t columns, int64_t edge) {
  return static_cast<int64_t>(clamped_sum(Wide{rows} - 1 + edge, columns) - clamped_sum(Wide{edge} - 1, columns));
}

}  // namespace

Tensor indices_of_triangle(int64_t rows, int64_t columns, int64_t offset, bool is_lower) {
  const int64_t all = checked_numel(Dims{rows, columns, 2}) / 2;
  // Fills the columns c of row r with c - r < edge or, for `above`, all others. Clamped without overflow.
  const int64_t clamped = offset > columns ? columns + 1 : offset < -rows ? -rows - 1 : offset;
  const int64_t edge = is_lower ? clamped + 1 : clamped;
  const int64_t below = count_below(rows, columns, edge);
  const int64_t count = is_lower ? below : all - below;
  const Tensor out = Tensor::empty(Dims{2, count}, DType::kInt64);
  if (count == 0) return out;
  // Only rows with such columns: the lower triangle begins late, the upper one ends early.
  const int64_t first = is_lower ? std::clamp<int64_t>(1 - edge, 0, rows) : 0;
  const int64_t last = is_lower ? rows : std::clamp<int64_t>(columns - edge, 0, rows);
  int64_t* row = out.data<int64_t>();
  int64_t* column = row + count;
  int64_t written = 0;
  for (int64_t r = first; r < last; ++r) {
    const int64_t middle = std::clamp<int64_t>(r + edge, 0, columns);
    const int64_t begin = is_lower ? 0 : middle, end = is_lower ? middle : columns;
    in_pieces(end - begin, kPieceElements, [&](int64_t from, int64_t to) {
      row = std::fill_n(row, to - from, r);
      for (int64_t c = begin + from; c < begin + to; ++c) *column++ = c;
    });
    if ((written += end - begin) < kPieceElements) continue;
    written = 0;
    check_work_cancelled();
  }
  return out;
}

}  // namespace tensord::kernels
