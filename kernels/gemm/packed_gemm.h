#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/ops/attributes/packed.h"
#include "core/tensor/half.h"
#include "kernels/base/half_epilogue.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/packed_gemm_tile.h"

// Products y = f(x @ w^T) with w known at load: w is repacked once, for any number of rows of x, and a run makes only a
// few numbers.
namespace tensord::kernels {

// w in panels of a few vectors' columns of w^T, [panel][step of k][column], in words of its type.
// Constant, shared by all workers.
class PackedMatrix {
 public:
  // `weight` is n × k of `dtype` (float32, float16 or bfloat16), as it lies; its rows are multiplied by `scale` unless
  // that is null. Halves stay halves where `precision` is kF32 and the processor multiplies by them, unless they are to
  // be widened, for rows of float32.
  PackedMatrix(const Matrix& weight, DType dtype, const float* scale, ops::Precision precision, bool widens = false);

  int64_t columns() const { return n_; }  // of the result
  int64_t depth() const { return k_; }
  int64_t words() const { return words_; }  // of a column; also of a packed row of x
  WordType type() const { return type_; }
  const TileKernels& kernels() const { return kernels_; }
  int64_t panels() const { return (n_ + kernels_.panel_columns() - 1) / kernels_.panel_columns(); }
  // The number of vectors of a panel; only the last may be narrower.
  int64_t vectors(int64_t panel) const;
  const uint32_t* panel(int64_t i) const {
    return static_cast<const uint32_t*>(data_.raw_data()) + i * words_ * kernels_.panel_columns();
  }
  // Of 8-bit weights, one per column: what a step of the number counts, and what the inputs' offset of 128
  // adds to the sum.
  const float* scales() const { return scales_.empty() ? nullptr : scales_.data(); }
  const int32_t* offsets() const { return offsets_.empty() ? nullptr : offsets_.data(); }
  size_t size_bytes() const;

 private:
  void pack_panel(const Matrix& weight, DType dtype, const float* scale, int64_t panel);
  void find_scales(const Matrix& weight, DType dtype, const float* scale);

  int64_t n_, k_;
  WordType type_;
  int64_t words_;
  TileKernels kernels_;
  Tensor data_;
  std::vector<float> scales_, inverse_;
  std::vector<int32_t> offsets_;
};

// The layout of x's rows: a stride, or an offset of each; strides in elements.
struct RowLayout {
  int64_t rows = 0;
  int64_t row_stride = 0, column_stride = 1;
  std::vector<int64_t> offsets;

  // The rows of all but the last dimension.
  static RowLayout of(const Tensor& tensor);
};

// The epilogue of the sums: bias, then the steps in order. At most one step adds another tensor.
struct GemmEpilogue {
  std::vector<float> bias;  // one per column
  std::vector<EpilogueStep> steps;

  bool adds_other() const;
};

// Writes rows first … end of x as bfloat16, `stride` elements from row to row.
using RowLoader = std::function<void(int64_t first, int64_t end, BFloat16* out, int64_t stride)>;

// Operands of one run.
struct GemmRun {
  const float* x = nullptr;
  const RowLoader* load = nullptr;  // instead of x, for a matrix of words of bfloat16
  const float* other = nullptr;     // row-major, and may be y; null: nothing is added
  float* y = nullptr;               // row-major
  // Instead of y and other: results in bfloat16, after these steps. `finish.other` has the layout of `halves` and may
  // be it.
  BFloat16* halves = nullptr;
  HalfEpilogue finish = {};
};

// One product for one layout of x, divided among a number of threads.
class PackedGemm {
 public:
  // The other tensor has `other_rows` rows, which are added cyclically; ignored without such a step.
  PackedGemm(std::shared_ptr<const PackedMatrix> matrix, std::shared_ptr<const GemmEpilogue> finish, RowLayout rows,
             int64_t other_rows, int threads);

  // `scratch` is aligned to 64.
  void run(const GemmRun& operands, void* scratch) const;

  bool adds_other() const { return adds_other_; }
  size_t scratch_bytes() const { return part_bytes_ * static_cast<size_t>(row_parts_ * panel_parts_); }
  ops::Cost cost() const;
  std::string variant() const;

 private:
  struct Part;
  void cut(int threads);
  void place();
  bool copies_rows() const;
  const TileKernels& kernels() const { return widens_ ? wide_kernels_ : matrix_->kernels(); }
  int64_t steps() const { return widens_ ? matrix_->depth() : matrix_->words(); }
  void load_part(Part& part, int64_t first, int64_t end) const;
  int64_t first_row(int64_t block) const { return layout_.rows * block / blocks_; }
  void run_part(Part& part) const;
  void run_rows(Part& part, int64_t begin, int64_t end) const;
  void expect_results(const Part& part, int64_t row, int64_t rows, int64_t column, int64_t width) const;
  void finish(const Part& part, int64_t block, int64_t panel, int64_t panels, float* tile) const;

  std::shared_ptr<const PackedMatrix> matrix_;
  std::shared_ptr<const GemmEpilogue> finish_;
  RowLayout layout_;
  int64_t other_rows_;
  bool adds_other_;
  bool has_epilogue_ = true;  // a bias that is not zero, or steps
  bool widens_ = false;       // panels of halves, each once for all rows of a chunk
  TileKernels wide_kernels_;

  int64_t blocks_ = 0;        // of rows, each at most a tile's
  int64_t chunk_blocks_ = 0;  // blocks done together, panel by panel
  int64_t chunk_rows_ = 0;    // most rows of such
  int64_t depth_steps_ = 0;   // steps done before the next block
  int64_t group_panels_ = 1;  // panels finished together
  int64_t row_parts_ = 1, panel_parts_ = 1;
  int64_t row_words_ = 0;  // of a copied row
  size_t part_bytes_ = 0, rows_at_ = 0, scales_at_ = 0, space_at_ = 0, panel_at_ = 0;
};

}  // namespace tensord::kernels
