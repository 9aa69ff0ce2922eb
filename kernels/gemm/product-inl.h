// Products of two matrices of TileT (float or double, defined before), included once per instruction set inside
// HWY_NAMESPACE. Blocks of the right one are packed where that pays, blocks of the left one where it lies by columns.
#include "kernels/gemm/gemm_tile-inl.h"

constexpr int64_t kProductDepth = 256, kProductColumns = 2048 / sizeof(TileT);  // of the right matrix, packed at once
constexpr int64_t kBlockRows = 96;   // of the left matrix, which with this depth stay in the second cache
constexpr int64_t kFewRows = 4;      // up to here columns are dotted where they lie
constexpr int64_t kRowsToPack = 48;  // from here on packing the right matrix pays
constexpr int64_t kColumnsToPackLeft = 128;
constexpr int64_t kWidestPanel = 256 / sizeof(TileT);
constexpr int64_t kRightScratch = kProductDepth * kProductColumns, kTailScratch = kBlockRows * kWidestPanel;
constexpr int64_t kProductScratch = kRightScratch + kTailScratch + kBlockRows * kProductDepth;

class Product {
 public:
  Product(const ProductShape& shape, const TileT* left, const TileT* right, TileT* out, TileT* scratch)
      : s_(shape), left_(left), right_(right), out_(out), scratch_(scratch), alpha_(static_cast<TileT>(shape.alpha)) {}

  void run(int64_t begin, int64_t end) const {
    if (s_.rows <= kFewRows && s_.right_depth == 1 && s_.left_depth == 1 && s_.depth > 1) return dots(begin, end);
    const bool packs = s_.right_column != 1 || s_.rows >= kRowsToPack;
    // What fills no whole panel, or no whole vector, goes through memory of its own.
    const int64_t unit = packs ? panel_columns() : tile_lanes(), whole = s_.columns / unit * unit;
    for (int64_t c = 0; c < whole; c += kProductColumns) {
      const int64_t columns = std::min(kProductColumns, whole - c);
      blocks(begin, end, c, columns, packs, out_ + begin * s_.out_row + c, s_.out_row, s_.accumulates);
    }
    if (whole == s_.columns) return;
    TileT* tail = scratch_ + kRightScratch;
    const int64_t columns = s_.columns - whole;
    for (int64_t r = begin; r < end; r += kBlockRows) {
      const int64_t last = std::min(end, r + kBlockRows);
      blocks(r, last, whole, columns, true, tail, kWidestPanel, false);
      for (int64_t i = r; i < last; ++i) {
        const TileT* from = tail + (i - r) * kWidestPanel;
        TileT* to = out_ + i * s_.out_row + whole;
        for (int64_t j = 0; j < columns; ++j) to[j] = s_.accumulates ? to[j] + from[j] : from[j];
      }
    }
  }

 private:
  void blocks(int64_t begin, int64_t end, int64_t column, int64_t columns, bool packs, TileT* out, int64_t out_row,
              bool accumulates) const {
    const bool packs_left = s_.left_depth != 1 && end - begin > kBlockRows && columns >= kColumnsToPackLeft;
    for (int64_t k = 0; k < s_.depth; k += kProductDepth) {
      const int64_t depth = std::min(kProductDepth, s_.depth - k);
      const TileT* from = right_ + k * s_.right_depth + column * s_.right_column;
      if (packs) pack_panels(from, s_.right_depth, s_.right_column, depth, columns, scratch_);
      const TileRight right =
          packs ? TileRight{scratch_, depth, TileRight::kPanelWidth} : TileRight{from, 1, s_.right_depth};
      for (int64_t r = begin; r < end; r += kBlockRows) {
        if (is_long_) check_work_cancelled();
        const int64_t rows = std::min(kBlockRows, end - r);
        TileLeft left{left_ + r * s_.left_row + k * s_.left_depth, s_.left_row, s_.left_depth};
        if (packs_left) left = pack_left(left, rows, depth, left_scratch());
        multiply_panels(rows, columns, depth, left, right,
                        {out + (r - begin) * out_row, out_row, &alpha_, 0, accumulates || k > 0});
      }
    }
  }

  TileT* left_scratch() const { return scratch_ + kRightScratch + kTailScratch; }

  void dots(int64_t begin, int64_t end) const {
    for (int64_t r = begin; r < end; ++r) {
      TileT* out = out_ + r * s_.out_row;
      TileT sums[4];
      for (int64_t j = 0; j < s_.columns; j += 4) {
        const int64_t count = std::min<int64_t>(4, s_.columns - j);
        dot_four(left_ + r * s_.left_row, right_ + j * s_.right_column, s_.right_column, count, s_.depth, sums);
        for (int64_t i = 0; i < count; ++i) out[j + i] = alpha_ * sums[i] + (s_.accumulates ? out[j + i] : TileT(0));
      }
    }
  }

  const ProductShape& s_;
  const TileT *left_, *right_;
  TileT *out_, *scratch_;
  const TileT alpha_;
  // Of small ones the caller looks.
  const bool is_long_ = static_cast<double>(s_.columns) * static_cast<double>(s_.depth) * kBlockRows > 1e7;
};
