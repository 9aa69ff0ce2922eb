#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/tensor.h"
#include "kernels/gemm/packed_gemm_tile.h"

// Products of unsigned 8-bit rows by signed 8-bit weights, on the tiles of gemm/packed_gemm_tile.h.
namespace tensord::kernels {

// Sums of the largest 8-bit numbers, less their zero points, stay below 2^31.
inline constexpr int64_t kMaxQuantizedDepth = 32'768;

// Weights n × k in panels, [panel][four along k][column]. Constant.
class QuantizedMatrix {
 public:
  // Strides in elements.
  QuantizedMatrix(const int8_t* data, int64_t n, int64_t k, int64_t row_stride, int64_t column_stride);

  int64_t columns() const { return n_; }  // of the result
  int64_t depth() const { return k_; }
  int64_t words() const { return words_; }
  // Of a row of x: `k` bytes, then zeros.
  int64_t row_words() const { return row_words_; }
  int64_t panels() const { return (n_ + kernels_.panel_columns() - 1) / kernels_.panel_columns(); }
  int64_t vectors(int64_t panel) const;
  const uint32_t* panel(int64_t i) const {
    return static_cast<const uint32_t*>(data_.raw_data()) + i * words_ * kernels_.panel_columns();
  }
  // The sum of each column's weights.
  const std::vector<int32_t>& sums() const { return sums_; }
  const TileKernels& kernels() const { return kernels_; }

 private:
  int64_t n_, k_, words_, row_words_;
  TileKernels kernels_;
  Tensor data_;
  std::vector<int32_t> sums_;
};

// What becomes of the sums, by column of the result. With x's zero point and the weights' taken off:
//   to f32     fma(sum, multiplier, bias)
//   to 8 bits  clamp(rint((sum + bias) · multiplier) + out_zero_point, least, most)
struct QuantizedEpilogue {
  int32_t zero_point = 0;                       // of x
  const int32_t* column_sums = nullptr;         // of the weights, less k times their zero point
  const int32_t* weight_zero_points = nullptr;  // null: all 0
  const int32_t* row_sums = nullptr;            // of x; only with weight_zero_points
  const float* column_scales = nullptr;         // of the weights
  float scale = 1;                              // of x
  const float* bias = nullptr;                  // of f32 results
  bool relu = false;
  float* out = nullptr;                // f32, or
  const float* multipliers = nullptr;  // 8 bits
  const float* scaled_bias = nullptr;
  int32_t out_zero_point = 0, least = 0, most = 255;
  uint8_t* out8 = nullptr;
  int64_t out_stride = 0;
};

// `rows` lie row_words() words apart, aligned to 64 bytes, with zeros after their k bytes. Runs on at most `threads`.
void quantized_product(const QuantizedMatrix& matrix, const uint32_t* rows, int64_t row_count,
                       const QuantizedEpilogue& finish, int threads);

// How x is rounded: clamp(rint(x / scale) + zero_point), the quotient by a product with the reciprocal.
struct RowQuantizer {
  float scale = 1;
  int32_t zero_point = 0;
};
// The least and the greatest number, at least with 0 between them. `is_finite` is false where one is not.
struct Extremes {
  float least = 0, greatest = 0;
  bool is_finite = true;
};
Extremes extremes_of(const float* x, int64_t count);
// x is row-major, k numbers in a row; `row_sums` may be null.
void quantize_rows(const RowQuantizer& quantizer, const float* x, int64_t rows, int64_t k, uint32_t* out,
                   int64_t row_words, int32_t* row_sums);

// The same for numbers one after the other.
void quantize_bytes(const RowQuantizer& quantizer, const float* x, int64_t count, uint8_t* out);

// PyTorch's choice of a scale for numbers in this range, for integers from `min` to `max`. A symmetric one has the
// middle of these for 0, where there are numbers on both sides of it.
RowQuantizer choose_quantizer(float least, float greatest, int32_t min, int32_t max, bool is_symmetric = false);

// Compiled per instruction set.
struct SumTile {
  const uint32_t* sums;  // int32
  int64_t stride;
  int64_t first_row, rows, first_column, columns;
};
void finish_sums(const QuantizedEpilogue& finish, const SumTile& tile);
// sums[c] = the sum over taps of (x[c] - zero_point) · (weight[c] - weight_zero_points[c]); x of a tap may be null,
// which adds nothing, and so may weight_zero_points. Weights lie [tap][channel].
void depthwise_sums(const std::vector<const uint8_t*>& taps, int32_t zero_point, const int8_t* weight,
                    const int32_t* weight_zero_points, int64_t channels, int32_t* sums);

}  // namespace tensord::kernels
