#pragma once

#include <cstdint>

#include "core/ops/prepared.h"
#include "kernels/base/epilogue_step.h"

// The functions that are compiled for each instruction set, for packed_gemm.cpp.
namespace tensord::kernels {

// Operands are rows of 32-bit words along k, whatever is in them: one f32, two halves or four
// 8-bit numbers (the left ones unsigned, the right ones signed). A step is one word of every row.
enum class WordType : uint8_t { kF32, kBf16, kF16, kInt8 };
WordType word_type(ops::Precision precision);
inline constexpr int kMaxTileRows = 9;
inline constexpr int kTileVectors = 3;

// One tile: c = a @ b, or c + a @ b, over `steps`. The words of `b` lie [step][column].
struct TileRun {
  const uint32_t* a;
  int64_t a_stride;  // words from row to row
  const uint32_t* b;
  int64_t steps;
  uint32_t* c;  // f32, or int32 when the operands are 8-bit
  int64_t c_stride;
  bool adds;
  const char* prefetch;  // one cache line a step is prefetched from here, for the next tile
  int64_t prefetch_step;
};
using TileFn = void (*)(const TileRun&);

// The kernels for one type of words on this machine, [rows - 1][vectors - 1].
struct TileKernels {
  int lanes = 0;        // columns of a vector
  int max_rows = 0;     // of a tile
  bool widens = false;  // converts halves to f32 in each step: for many rows it is faster to widen a panel once
  const char* name = "";
  TileFn run[kMaxTileRows][kTileVectors] = {};

  int panel_columns() const { return lanes * kTileVectors; }
};
// Without lanes if the processor cannot convert float16.
TileKernels tile_kernels(WordType type);
// Panels of halves as panels of f32: `words` steps of `width` columns become twice as many.
void widen_panel(WordType type, const uint32_t* panel, int64_t words, int64_t width, float* out);

// Rows of f32 in memory.
struct RowSource {
  const float* data;
  int64_t row_stride, column_stride;
  const int64_t* offsets;  // of each row, instead of row_stride; or null

  const float* row(int64_t i) const { return data + (offsets ? offsets[i] : i * row_stride); }
};
// Writes rows begin … end as words of `type`, `stride` words from row to row, the last word filled up
// with zeros. 8-bit rows are q + 128 with q = round(x / scale), and scales[i] gets the scale of row begin + i:
// NaN for a row that is not finite. `space` holds kGatherRows * k numbers; it is not used for f32 or a column
// stride of 1.
inline constexpr int64_t kGatherRows = 16;
void load_rows(WordType type, const RowSource& source, int64_t begin, int64_t end, int64_t k, uint32_t* out,
               int64_t stride, float* scales, float* space);

// Turns the sums of a tile into results: scales them (8-bit), adds the bias, does the steps.
struct EpilogueRun {
  float* tile;  // written over
  int64_t tile_stride;
  int64_t rows, columns;
  const float* bias;
  const EpilogueStep* steps;
  int64_t step_count;            // at least 1
  const float* other = nullptr;  // row `first_row` modulo `other_rows` belongs to the tile's first row
  int64_t other_stride = 0, first_row = 0, other_rows = 1;
  float* out = nullptr;
  int64_t out_stride = 0;
  // 8-bit only: the tile holds int32; result = (sum - offset[column]) * row_scale * column_scale.
  const int32_t* column_offset = nullptr;
  const float* column_scale = nullptr;
  const float* row_scale = nullptr;
};
void finish_tile(const EpilogueRun& run);

}  // namespace tensord::kernels
