// Products with packed weights: the division of the work and the order of the tiles.
#include "kernels/gemm/packed_gemm.h"

#include <algorithm>

#include "core/base/parallel.h"
#include "kernels/base/half_rows.h"

namespace tensord::kernels {
namespace {

// A block of a panel stays in the L2 cache together with the chunk of rows that it is multiplied with.
constexpr int64_t kPanelBlockBytes = 160 * 1024;
constexpr int64_t kChunkBytes = 384 * 1024;
// The sums of one row that are finished together: a few long loops instead of many short ones.
constexpr int64_t kGroupColumns = 512;
// From this many rows on, a panel of halves is converted once, not in each tile.
constexpr int64_t kWidenedRows = 8;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Rows at this distance share a set of the L1 cache.
bool is_bad_stride(int64_t words) { return words % 1024 == 0; }

}  // namespace

RowLayout RowLayout::of(const Tensor& tensor) {
  RowLayout layout;
  const auto dims = static_cast<size_t>(tensor.ndim());
  const Dims &sizes = tensor.sizes(), &strides = tensor.strides();
  const int64_t k = sizes.back();
  layout.rows = tensor.numel() / std::max<int64_t>(k, 1);
  layout.column_stride = k == 1 ? 1 : strides.back();
  bool possible = false;
  const Dims folded =
      view_strides(sizes.span().first(dims - 1), strides.span().first(dims - 1), Dims{layout.rows}, &possible);
  if (possible) {
    layout.row_stride = layout.rows == 1 ? k : folded[0];
    return layout;
  }
  for (int64_t r = 0; r < layout.rows; ++r) {
    int64_t offset = 0, rest = r;
    for (size_t d = dims - 1; d-- > 0; rest /= sizes[d]) offset += rest % sizes[d] * strides[d];
    layout.offsets.push_back(offset);
  }
  return layout;
}

bool GemmEpilogue::adds_other() const {
  return std::any_of(steps.begin(), steps.end(),
                     [](const EpilogueStep& s) { return s.kind == EpilogueStep::Kind::kAdd; });
}

// The work of one thread: blocks of rows by panels, with memory of its own.
struct PackedGemm::Part {
  const GemmRun& operands;
  char* scratch;
  int64_t first_block, last_block, first_panel, last_panel;
  // The rows of the current chunk.
  const uint32_t* a;
  int64_t a_stride;
};

PackedGemm::PackedGemm(std::shared_ptr<const PackedMatrix> matrix, std::shared_ptr<const GemmEpilogue> finish,
                       RowLayout rows, int64_t other_rows, int threads)
    : matrix_(std::move(matrix)),
      finish_(std::move(finish)),
      layout_(std::move(rows)),
      other_rows_(std::max<int64_t>(other_rows, 1)),
      adds_other_(finish_->adds_other()) {
  has_epilogue_ = !finish_->steps.empty() || std::ranges::any_of(finish_->bias, [](float x) { return x != 0; });
  widens_ = matrix_->kernels().widens && layout_.rows >= kWidenedRows;
  if (widens_) wide_kernels_ = tile_kernels(WordType::kF32);
  const TileKernels& kernels = this->kernels();
  const int64_t words = steps(), width = kernels.panel_columns();
  blocks_ = divide_up(layout_.rows, kernels.max_rows);
  cut(threads);
  const int64_t part_blocks = divide_up(blocks_, row_parts_);
  chunk_blocks_ =
      std::clamp<int64_t>(kChunkBytes / (words * 4) / kernels.max_rows, 2, std::max<int64_t>(part_blocks, 2));
  if (blocks_ == 1) chunk_blocks_ = 1;
  depth_steps_ = words;
  if (part_blocks > 1) depth_steps_ = divide_up(words, divide_up(words * width * 4, kPanelBlockBytes));
  depth_steps_ += widens_ && depth_steps_ < words ? depth_steps_ % 2 : 0;  // whole words
  group_panels_ = 1;
  if (blocks_ == 1) group_panels_ = std::max<int64_t>(kGroupColumns / (width * layout_.rows), 1);
  place();
}

// Divides the product into a grid of parts. The largest part should be small; among equals, the grid that reads less of
// x twice wins, because threads that read the same weights share them in a cache.
void PackedGemm::cut(int threads) {
  const double ns = std::max(cost().flops / 80, cost().bytes / 40);
  const int parts =
      parallel_parts(blocks_ * matrix_->panels(), ns / static_cast<double>(blocks_ * matrix_->panels()), threads);
  int64_t min = INT64_MAX;
  for (int64_t p = 1; p <= parts; ++p) {
    const int64_t rows = std::min(blocks_, parts / p), panels = std::min(matrix_->panels(), p);
    const int64_t work = divide_up(blocks_, rows) * divide_up(matrix_->panels(), panels);
    if (work >= min) continue;
    min = work;
    row_parts_ = rows;
    panel_parts_ = panels;
  }
}

bool PackedGemm::copies_rows() const {
  return matrix_->type() != WordType::kF32 || layout_.column_stride != 1 || !layout_.offsets.empty() ||
         (is_bad_stride(layout_.row_stride) && blocks_ > 1 && matrix_->panels() > 2);
}

// Scratch of a part: sums, then rows as words, their scales, space to gather rows in, and a block of a panel.
void PackedGemm::place() {
  const int64_t words = steps();
  const TileKernels& kernels = this->kernels();
  const int64_t max_rows = divide_up(layout_.rows, blocks_);
  chunk_rows_ = std::min(layout_.rows, chunk_blocks_ * max_rows);
  const int64_t tile_rows = depth_steps_ < words ? chunk_rows_ : max_rows;
  const auto bytes = [](int64_t numbers) { return aligned(static_cast<size_t>(numbers) * 4); };
  rows_at_ = bytes(tile_rows * group_panels_ * kernels.panel_columns());
  row_words_ = 0;
  if (copies_rows()) {
    row_words_ = divide_up(words, 16) * 16;
    if (is_bad_stride(row_words_)) row_words_ += 16;
  }
  scales_at_ = rows_at_ + bytes(chunk_rows_ * row_words_);
  space_at_ = scales_at_ + (matrix_->type() == WordType::kInt8 ? bytes(chunk_rows_) : 0);
  const bool gathers = layout_.column_stride != 1 && matrix_->type() != WordType::kF32;
  panel_at_ = space_at_ + (gathers ? bytes(kGatherRows * matrix_->depth()) : 0);
  part_bytes_ = panel_at_ + (widens_ ? bytes((depth_steps_ + 1) / 2 * 2 * kernels.panel_columns()) : 0);
}

ops::Cost PackedGemm::cost() const {
  const auto m = static_cast<double>(layout_.rows), n = static_cast<double>(matrix_->columns()),
             k = static_cast<double>(matrix_->depth());
  return {2 * m * n * k, static_cast<double>(matrix_->size_bytes()) + 4 * (m * k + m * n * (adds_other_ ? 2 : 1))};
}

std::string PackedGemm::variant() const {
  return std::string(layout_.rows == 1 ? "gemv " : "gemm ") + matrix_->kernels().name;
}

void PackedGemm::run(const GemmRun& operands, void* scratch) const {
  const int64_t parts = row_parts_ * panel_parts_;
  parallel_run(static_cast<int>(parts), [&](int i) {
    const int64_t row = i / panel_parts_, column = i % panel_parts_, panels = matrix_->panels();
    Part part{operands,
              static_cast<char*>(scratch) + static_cast<size_t>(i) * part_bytes_,
              blocks_ * row / row_parts_,
              blocks_ * (row + 1) / row_parts_,
              panels * column / panel_parts_,
              panels * (column + 1) / panel_parts_,
              nullptr,
              0};
    run_part(part);
  });
}

void PackedGemm::run_part(Part& part) const {
  for (int64_t begin = part.first_block; begin < part.last_block; begin += chunk_blocks_) {
    const int64_t end = std::min(begin + chunk_blocks_, part.last_block), row = first_row(begin);
    if (row_words_ > 0) {
      load_part(part, row, first_row(end));
    } else {
      part.a = reinterpret_cast<const uint32_t*>(part.operands.x + row * layout_.row_stride);
      part.a_stride = layout_.row_stride;
    }
    run_rows(part, begin, end);
  }
}

// Rows as words. Halves are stored behind their final place first and then converted from the start on: the words still
// to be read lie beyond those that are written.
void PackedGemm::load_part(Part& part, int64_t first, int64_t end) const {
  auto* rows = reinterpret_cast<uint32_t*>(part.scratch + rows_at_);
  const RowSource source{part.operands.x, layout_.row_stride, layout_.column_stride,
                         layout_.offsets.empty() ? nullptr : layout_.offsets.data()};
  const int64_t behind = widens_ ? row_words_ - matrix_->words() : 0, k = matrix_->depth();
  if (part.operands.load != nullptr) {
    for (int64_t r = 0; k % 2 != 0 && r < end - first; ++r) rows[behind + r * row_words_ + k / 2] = 0;
    (*part.operands.load)(first, end, reinterpret_cast<BFloat16*>(rows + behind), 2 * row_words_);
  } else {
    load_rows(matrix_->type(), source, first, end, k, rows + behind, row_words_,
              reinterpret_cast<float*>(part.scratch + scales_at_), reinterpret_cast<float*>(part.scratch + space_at_));
  }
  for (int64_t r = 0; widens_ && r < end - first; ++r) {
    uint32_t* const row = rows + r * row_words_;
    auto* const wide = reinterpret_cast<float*>(row);
    if (matrix_->type() == WordType::kF16) {
      widen_row(reinterpret_cast<const Half*>(row + behind), wide, k);
    } else {
      widen_row(reinterpret_cast<const BFloat16*>(row + behind), wide, k);
    }
  }
  part.a = rows;
  part.a_stride = row_words_;
}

// The blocks begin … end times all panels of the part. A block of a panel is used for all of them, while the next block
// is prefetched.
void PackedGemm::run_rows(Part& part, int64_t begin, int64_t end) const {
  const TileKernels& kernels = this->kernels();
  const int64_t words = steps(), columns = kernels.panel_columns(), stride = group_panels_ * columns;
  auto* sums = reinterpret_cast<uint32_t*>(part.scratch);
  const int64_t first = first_row(begin);
  for (int64_t panel = part.first_panel; panel < part.last_panel; ++panel) {
    const int64_t vectors = matrix_->vectors(panel), width = vectors * kernels.lanes;
    const int64_t in_group = (panel - part.first_panel) % group_panels_;
    const bool ends_group = in_group + 1 == group_panels_ || panel + 1 == part.last_panel;
    for (int64_t depth = 0; depth < words; depth += depth_steps_) {
      const int64_t steps = std::min(depth_steps_, words - depth);
      const int64_t numbers = widens_ ? 2 : 1, block_words = divide_up(steps, numbers);
      const uint32_t* b = matrix_->panel(panel) + depth / numbers * width;
      const auto* next = reinterpret_cast<const char*>(b + block_words * width);
      if (widens_) {
        auto* const wide = reinterpret_cast<float*>(part.scratch + panel_at_);
        widen_panel(matrix_->type(), b, block_words, width, wide);
        b = reinterpret_cast<const uint32_t*>(wide);
      }
      for (int64_t block = begin; block < end; ++block, next += steps * 64) {
        const int64_t row = first_row(block) - first, rows = first_row(block + 1) - first - row;
        uint32_t* tile = sums + (depth_steps_ < words ? row * stride : 0) + in_group * columns;
        if (depth + steps == words) expect_results(part, first + row, rows, panel * columns, width);
        kernels.run[rows - 1][vectors - 1](
            {part.a + row * part.a_stride + depth, part.a_stride, b, steps, tile, stride, depth > 0, next, 64});
        if (depth + steps == words && ends_group)
          finish(part, block, panel - in_group, in_group + 1, reinterpret_cast<float*>(tile - in_group * columns));
      }
    }
  }
}

// Prefetches the memory for results, which stores would otherwise wait for.
void PackedGemm::expect_results(const Part& part, int64_t row, int64_t rows, int64_t column, int64_t width) const {
  constexpr int64_t kLine = 16;
  const int64_t n = matrix_->columns();
  const GemmRun& to = part.operands;
  for (int64_t r = row; r < row + rows; ++r) {
    for (int64_t c = column; to.halves != nullptr && c < column + width; c += 2 * kLine)
      __builtin_prefetch(to.halves + r * n + c, 1);
    for (int64_t c = column; to.halves == nullptr && c < column + width; c += kLine) {
      __builtin_prefetch(to.y + r * n + c, 1);
      if (adds_other_) __builtin_prefetch(to.other + r % other_rows_ * n + c);
    }
  }
}

void PackedGemm::finish(const Part& part, int64_t block, int64_t panel, int64_t panels, float* tile) const {
  const int64_t n = matrix_->columns(), width = kernels().panel_columns(), column = panel * width;
  const int64_t row = first_row(block), in_chunk = row - first_row(block - (block - part.first_block) % chunk_blocks_);
  const GemmRun& to = part.operands;
  static constexpr EpilogueStep kBiasOnly;
  const bool has_steps = !finish_->steps.empty(), is_half = to.halves != nullptr;
  EpilogueRun run{.tile = tile,
                  .tile_stride = group_panels_ * width,
                  .rows = first_row(block + 1) - row,
                  .columns = std::min(panels * width, n - column),
                  .bias = finish_->bias.data() + column,
                  .steps = has_steps ? finish_->steps.data() : &kBiasOnly,
                  .step_count = has_steps ? static_cast<int64_t>(finish_->steps.size()) : 1,
                  .other = adds_other_ ? to.other + column : nullptr,
                  .other_stride = n,
                  .first_row = row,
                  .other_rows = other_rows_,
                  .out = is_half ? tile : to.y + row * n + column,
                  .out_stride = is_half ? group_panels_ * width : n};
  if (matrix_->type() == WordType::kInt8) {
    run.column_offset = matrix_->offsets() + column;
    run.column_scale = matrix_->scales() + column;
    run.row_scale = reinterpret_cast<const float*>(part.scratch + scales_at_) + in_chunk;
  }
  const bool is_done = is_half && !has_epilogue_ && matrix_->type() == WordType::kBf16;  // sums are never -0
  if (!is_done) finish_tile(run);
  if (!is_half) return;
  HalfEpilogue steps = to.finish;
  const int64_t at = row * n + column;
  if (steps.scale != nullptr) steps.scale += column, steps.shift += column;
  if (steps.other != nullptr) steps.other = static_cast<const BFloat16*>(steps.other) + at;
  finish_rows({tile, run.rows, run.columns, run.tile_stride}, steps, to.halves + at, n);
}

}  // namespace tensord::kernels
