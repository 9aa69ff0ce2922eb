// Register tiles of products of TileT (float or double, defined before), included once per instruction set inside
// HWY_NAMESPACE, after <hwy/highway.h>. The left matrix is read as it lies, one element at a time; the right one lies
// in panels (packed here) or is row-major, and is read in whole vectors.

namespace hn = hwy::HWY_NAMESPACE;
using TileD = hn::ScalableTag<TileT>;
using TileV = hn::Vec<TileD>;

inline int64_t tile_lanes() { return static_cast<int64_t>(hn::Lanes(TileD())); }
constexpr int kTileRows = 6;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int kTileVectors = 4;  // 24 of 32 registers hold sums
#else
constexpr int kTileVectors = 2;  // 12 of 16
#endif
inline int64_t panel_columns() { return kTileVectors * tile_lanes(); }
inline int64_t whole_vectors(int64_t columns) { return (columns + tile_lanes() - 1) / tile_lanes() * tile_lanes(); }

// The left matrix: element (row, k) at data[row * row_step + k * depth_step]; or packed in tiles of kTileRows rows that
// begin tile_step apart (0: where row_step says).
struct TileLeft {
  const TileT* data;
  int64_t row_step, depth_step;
  int64_t tile_step = 0;
};

// The right matrix in panels of panel_columns(), the last one narrower but of whole vectors. A panel that
// starts at column c begins at data[c * column_step] and has its rows depth_step apart; 0 is one row for all.
struct TileRight {
  static constexpr int64_t kPanelWidth = INT64_MIN;  // as depth_step: rows as far apart as the panel is wide
  const TileT* data;
  int64_t column_step, depth_step;
};

// c[row] = (accumulates ? c[row] : 0) + scales[row * scale_step] * left[row] @ right.
struct TileOut {
  TileT* data;
  int64_t row_step;
  const TileT* scales;
  int64_t scale_step;
  bool accumulates;
};

template <int kRows, int kVectors>
HWY_INLINE void run_tile(const TileLeft& left, const TileT* right, int64_t right_step, int64_t depth,
                         const TileOut& out) {
  const TileD d;
  const int64_t lanes = tile_lanes();
  TileV sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  }
  const TileT* a = left.data;
  const int64_t row_step = left.row_step;
  for (int64_t k = 0; k < depth; ++k, a += left.depth_step, right += right_step) {
    TileV b[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) b[v] = hn::LoadU(d, right + v * lanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const TileV x = hn::Set(d, a[r * row_step]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(x, b[v], sums[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const TileV scale = hn::Set(d, out.scales[r * out.scale_step]);
    TileT* c = out.data + r * out.row_step;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      TileT* to = c + v * lanes;
      hn::StoreU(out.accumulates ? hn::MulAdd(sums[r][v], scale, hn::LoadU(d, to)) : hn::Mul(sums[r][v], scale), d, to);
    }
  }
}

template <int kVectors>
HWY_NOINLINE void run_tile_rows(int64_t rows, const TileLeft& left, const TileT* right, int64_t right_step,
                                int64_t depth, const TileOut& out) {
  switch (rows) {
    case 1: return run_tile<1, kVectors>(left, right, right_step, depth, out);
    case 2: return run_tile<2, kVectors>(left, right, right_step, depth, out);
    case 3: return run_tile<3, kVectors>(left, right, right_step, depth, out);
    case 4: return run_tile<4, kVectors>(left, right, right_step, depth, out);
    case 5: return run_tile<5, kVectors>(left, right, right_step, depth, out);
    default: return run_tile<6, kVectors>(left, right, right_step, depth, out);
  }
}

// Writes whole vectors: rows of `out` have room for whole_vectors(columns).
inline void multiply_panels(int64_t rows, int64_t columns, int64_t depth, const TileLeft& left, const TileRight& right,
                            const TileOut& out) {
  for (int64_t c = 0; c < columns; c += panel_columns()) {
    const int64_t width = std::min(panel_columns(), whole_vectors(columns - c));
    const TileT* panel = right.data + c * right.column_step;
    const int64_t step = right.depth_step == TileRight::kPanelWidth ? width : right.depth_step;
    for (int64_t r = 0; r < rows; r += kTileRows) {
      const int64_t count = std::min<int64_t>(kTileRows, rows - r);
      const int64_t from = left.tile_step ? r / kTileRows * left.tile_step : r * left.row_step;
      const TileLeft some{left.data + from, left.row_step, left.depth_step};
      const TileOut to{out.data + r * out.row_step + c, out.row_step, out.scales + r * out.scale_step, out.scale_step,
                       out.accumulates};
      switch (width / tile_lanes()) {
        case 1: run_tile_rows<1>(count, some, panel, step, depth, to); break;
        case 2: run_tile_rows<2>(count, some, panel, step, depth, to); break;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
        case 3: run_tile_rows<3>(count, some, panel, step, depth, to); break;
        default: run_tile_rows<4>(count, some, panel, step, depth, to); break;
#endif
      }
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
// Copies out[k * width + j] = rows[j][k] for a block of 4 by 4.
inline void transpose_block(const float* const rows[4], float* out, int64_t width) {
  const hn::FixedTag<float, 4> d;
  const hn::Repartition<uint64_t, decltype(d)> d2;
  const auto a = hn::LoadU(d, rows[0]), b = hn::LoadU(d, rows[1]), c = hn::LoadU(d, rows[2]), e = hn::LoadU(d, rows[3]);
  const auto ab0 = hn::BitCast(d2, hn::InterleaveLower(d, a, b)), ab1 = hn::BitCast(d2, hn::InterleaveUpper(d, a, b)),
             ce0 = hn::BitCast(d2, hn::InterleaveLower(d, c, e)), ce1 = hn::BitCast(d2, hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d2, ab0, ce0)), d, out);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d2, ab0, ce0)), d, out + width);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d2, ab1, ce1)), d, out + 2 * width);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d2, ab1, ce1)), d, out + 3 * width);
}

inline void transpose_block(const double* const rows[4], double* out, int64_t width) {
  const hn::FixedTag<double, 2> d;
  for (int64_t k = 0; k < 4; k += 2) {
    for (int j = 0; j < 4; j += 2) {
      const auto a = hn::LoadU(d, rows[j] + k), b = hn::LoadU(d, rows[j + 1] + k);
      hn::StoreU(hn::InterleaveLower(d, a, b), d, out + k * width + j);
      hn::StoreU(hn::InterleaveUpper(d, a, b), d, out + (k + 1) * width + j);
    }
  }
}
#endif

// Copies to[k * width + j] = from[k + j * column_step] for j < columns, k < depth, in blocks of 4 by 4.
inline void pack_transposed(const TileT* from, int64_t column_step, int64_t columns, int64_t depth, TileT* to,
                            int64_t width) {
  int64_t j = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; j + 4 <= columns; j += 4) {
    const TileT* row0 = from + j * column_step;
    const TileT* rows[4] = {row0, row0 + column_step, row0 + 2 * column_step, row0 + 3 * column_step};
    int64_t k = 0;
    for (; k + 4 <= depth; k += 4) {
      transpose_block(rows, to + k * width + j, width);
      for (const TileT*& row : rows) row += 4;
    }
    for (; k < depth; ++k) {
      for (int i = 0; i < 4; ++i) to[k * width + j + i] = *rows[i]++;
    }
  }
#endif
  for (; j < columns; ++j) {
    for (int64_t k = 0; k < depth; ++k) to[k * width + j] = from[j * column_step + k];
  }
}

// Copies one row of a panel, panel_columns() elements.
inline void copy_panel_row(const TileT* from, TileT* to) {
  const TileD d;
#pragma GCC unroll 4
  for (int v = 0; v < kTileVectors; ++v) hn::StoreU(hn::LoadU(d, from + v * tile_lanes()), d, to + v * tile_lanes());
}

// Makes the panels of the right matrix whose element (k, j) is from[k * depth_step + j * column_step]; what
// fills up the last vector is zero. `to` has room for depth * whole_vectors(columns).
inline void pack_panels(const TileT* from, int64_t depth_step, int64_t column_step, int64_t depth, int64_t columns,
                        TileT* to) {
  // Whole panels of rows that are dense: row by row, as they lie.
  const int64_t whole = column_step == 1 && depth_step != 1 ? columns / panel_columns() * panel_columns() : 0;
  for (int64_t k = 0; k < depth && whole; ++k) {
    const TileT* row = from + k * depth_step;
    for (int64_t c = 0; c < whole; c += panel_columns()) copy_panel_row(row + c, to + c * depth + k * panel_columns());
  }
  for (int64_t c = whole; c < columns; c += panel_columns()) {
    const int64_t width = std::min(panel_columns(), whole_vectors(columns - c)), count = std::min(width, columns - c);
    const TileT* source = from + c * column_step;
    TileT* panel = to + c * depth;
    if (depth_step == 1) {
      pack_transposed(source, column_step, count, depth, panel, width);
    } else {
      for (int64_t k = 0; k < depth; ++k) {
        const TileT* row = source + k * depth_step;
        for (int64_t j = 0; j < count; ++j) panel[k * width + j] = row[j * column_step];
      }
    }
    if (count == width) continue;
    for (int64_t k = 0; k < depth; ++k) std::fill(panel + k * width + count, panel + (k + 1) * width, TileT(0));
  }
}

// Packs rows of the left matrix in tiles: element (row, k) of each at [k * kTileRows + row]. `to` has room for depth *
// rows, rounded up to whole tiles.
inline TileLeft pack_left(const TileLeft& from, int64_t rows, int64_t depth, TileT* to) {
  for (int64_t r = 0; r < rows; r += kTileRows) {
    const TileT* source = from.data + r * from.row_step;
    const int64_t count = std::min<int64_t>(kTileRows, rows - r);
    TileT* tile = to + r * depth;
    if (from.row_step == 1 && count == kTileRows) {
      for (int64_t k = 0; k < depth; ++k) {
        for (int i = 0; i < kTileRows; ++i) tile[k * kTileRows + i] = source[k * from.depth_step + i];
      }
    } else {
      for (int64_t k = 0; k < depth; ++k) {
        for (int64_t i = 0; i < count; ++i) tile[k * kTileRows + i] = source[k * from.depth_step + i * from.row_step];
      }
    }
  }
  return {to, 1, kTileRows, depth * kTileRows};
}

// sums[i] = left . right[i] for i < count <= 4; four sums hide the latency of the FMA.
inline void dot_four(const TileT* left, const TileT* right, int64_t right_step, int64_t count, int64_t depth,
                     TileT* sums) {
  const TileD d;
  const int64_t lanes = tile_lanes();
  const TileT* rows[4];
  for (int64_t i = 0; i < 4; ++i) rows[i] = right + std::min(i, count - 1) * right_step;
  TileV s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  int64_t k = 0;
  for (; k + lanes <= depth; k += lanes) {
    const TileV x = hn::LoadU(d, left + k);
    s0 = hn::MulAdd(x, hn::LoadU(d, rows[0] + k), s0);
    s1 = hn::MulAdd(x, hn::LoadU(d, rows[1] + k), s1);
    s2 = hn::MulAdd(x, hn::LoadU(d, rows[2] + k), s2);
    s3 = hn::MulAdd(x, hn::LoadU(d, rows[3] + k), s3);
  }
  sums[0] = hn::GetLane(hn::SumOfLanes(d, s0));
  sums[1] = hn::GetLane(hn::SumOfLanes(d, s1));
  sums[2] = hn::GetLane(hn::SumOfLanes(d, s2));
  sums[3] = hn::GetLane(hn::SumOfLanes(d, s3));
  for (; k < depth; ++k) {
    for (int i = 0; i < 4; ++i) sums[i] += left[k] * rows[i][k];
  }
}
