#include "kernels/quantized/product.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/parallel.h"
#include "core/base/thread_priority.h"

namespace tensord::kernels {
namespace {

// Rows that stay in the L2 cache while all panels are multiplied by them.
constexpr int64_t kChunkBytes = 256 * 1024;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

QuantizedMatrix::QuantizedMatrix(const int8_t* data, int64_t n, int64_t k, int64_t row_stride, int64_t column_stride)
    : n_(n),
      k_(k),
      words_(divide_up(k, 4)),
      row_words_(divide_up(words_, 16) * 16),
      kernels_(tile_kernels(WordType::kInt8)),
      sums_(static_cast<size_t>(n)) {
  if (row_words_ % 1024 == 0) row_words_ += 16;  // else all rows would share one set of the L1 cache
  const int64_t lanes = kernels_.lanes;
  data_ = Tensor::empty(Dims{divide_up(n, lanes) * lanes * words_ * 4}, DType::kUInt8);
  parallel_for_cost(panels(), static_cast<double>(kernels_.panel_columns() * k), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t width = vectors(i) * lanes, first = i * kernels_.panel_columns();
      auto* out = reinterpret_cast<int8_t*>(const_cast<uint32_t*>(panel(i)));
      std::memset(out, 0, static_cast<size_t>(width * words_ * 4));
      for (int64_t j = 0; j < std::min(width, n - first); ++j) {
        const int8_t* row = data + (first + j) * row_stride;
        int32_t sum = 0;
        for (int64_t at = 0; at < k; ++at) {
          const int8_t value = row[at * column_stride];
          out[(at / 4 * width + j) * 4 + at % 4] = value;
          sum += value;
        }
        sums_[static_cast<size_t>(first + j)] = sum;
      }
      let_others_run();
    }
  });
}

int64_t QuantizedMatrix::vectors(int64_t panel) const {
  const int64_t left = n_ - panel * kernels_.panel_columns();
  return std::min<int64_t>(kTileVectors, divide_up(left, kernels_.lanes));
}

namespace {

// Blocks of rows by panels, for one thread: all panels for the rows in the cache, then the next rows.
void run_part(const QuantizedMatrix& matrix, const uint32_t* rows, int64_t first_row, int64_t last_row,
              int64_t first_panel, int64_t last_panel, const QuantizedEpilogue& finish) {
  const TileKernels& kernels = matrix.kernels();
  const int64_t words = matrix.words(), stride = matrix.row_words(), width = kernels.panel_columns();
  constexpr int kMaxLanes = 16;
  alignas(64) uint32_t tile[kMaxTileRows * kMaxLanes * kTileVectors];
  check_internal(kernels.lanes <= kMaxLanes, "vectors of ", kernels.lanes);
  const int64_t chunk = std::max<int64_t>(kChunkBytes / (stride * 4) / kernels.max_rows, 1) * kernels.max_rows;
  for (int64_t begin = first_row; begin < last_row; begin += chunk) {
    const int64_t end = std::min(begin + chunk, last_row);
    for (int64_t panel = first_panel; panel < last_panel; ++panel) {
      const int64_t vectors = matrix.vectors(panel);
      const uint32_t* b = matrix.panel(panel);
      const auto* next = reinterpret_cast<const char*>(b + words * vectors * kernels.lanes);
      // Blocks of equal size, to avoid a last one of a row or two.
      const int64_t blocks = divide_up(end - begin, kernels.max_rows);
      for (int64_t block = 0; block < blocks; ++block, next += words * 64) {
        const int64_t row = begin + (end - begin) * block / blocks, stop = begin + (end - begin) * (block + 1) / blocks;
        kernels.run[stop - row - 1][vectors - 1]({rows + row * stride, stride, b, words, tile, width, false, next, 64});
        finish_sums(finish,
                    {tile, width, row, stop - row, panel * width, std::min(width, matrix.columns() - panel * width)});
      }
    }
  }
}

}  // namespace

void quantized_product(const QuantizedMatrix& matrix, const uint32_t* rows, int64_t row_count,
                       const QuantizedEpilogue& finish, int threads) {
  const int64_t blocks = divide_up(row_count, matrix.kernels().max_rows), panels = matrix.panels();
  if (blocks == 0 || panels == 0) return;
  const double ns = static_cast<double>(row_count) * static_cast<double>(matrix.columns() * matrix.depth()) / 150;
  const int parts = parallel_parts(blocks * panels, ns / static_cast<double>(blocks * panels), threads);
  // Threads share the panels of weights where there are enough of them, since these are most of the memory.
  const int64_t panel_parts = std::min<int64_t>(panels, parts), row_parts = std::min(blocks, parts / panel_parts);
  parallel_run(static_cast<int>(panel_parts * row_parts), [&](int i) {
    const int64_t r = i / panel_parts, p = i % panel_parts;
    run_part(matrix, rows, row_count * r / row_parts, row_count * (r + 1) / row_parts, panels * p / panel_parts,
             panels * (p + 1) / panel_parts, finish);
  });
}

RowQuantizer choose_quantizer(float least, float greatest, int32_t min, int32_t max, bool is_symmetric) {
  // Smaller scales are enlarged, so that sums of products keep their precision.
  constexpr float kSmallScale = 6.1e-5f;
  const int32_t half = (max - min) / 2;
  const double low = min, high = max, steps = high - low;
  const bool has_middle = is_symmetric && least < 0 && greatest > 0;
  if (has_middle) {
    const float below = std::abs(least / static_cast<float>(-(half + 1)));
    const double largest = std::max(below, std::abs(greatest / static_cast<float>(half)));
    least = static_cast<float>(largest * -(half + 1));
    greatest = static_cast<float>(largest * half);
  }
  least = std::min(least, 0.0f);
  greatest = std::max(greatest, 0.0f);
  double scale = (static_cast<double>(greatest) - static_cast<double>(least)) / steps;
  if (static_cast<float>(scale) == 0.0f || std::isinf(1.0f / static_cast<float>(scale))) scale = 0.1;
  if (scale < static_cast<double>(kSmallScale)) {
    const auto before = static_cast<float>(scale);
    scale = static_cast<double>(kSmallScale);
    if (least == 0.0f) {
      greatest = kSmallScale * static_cast<float>(steps);
    } else if (greatest == 0.0f) {
      least = -kSmallScale * static_cast<float>(steps);
    } else {
      const float by = kSmallScale / before;
      least *= by;
      greatest *= by;
    }
  }
  // The end of the range that loses less. 0 is always a whole number of steps.
  const double from_least = low - static_cast<double>(least) / scale;
  const double from_greatest = high - static_cast<double>(greatest) / scale;
  const double min_error = std::abs(low) - std::abs(static_cast<double>(least) / scale);
  const double greatest_error = std::abs(high) - std::abs(static_cast<double>(greatest) / scale);
  const double chosen = min_error < greatest_error ? from_least : from_greatest;
  const double zero_point = std::clamp(has_middle ? (low + high) / 2 : chosen, low, high);
  return {static_cast<float>(scale), static_cast<int32_t>(std::nearbyint(zero_point))};
}

}  // namespace tensord::kernels
