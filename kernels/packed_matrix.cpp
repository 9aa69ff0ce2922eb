// Weights repacked for the tiles of kernels/packed_gemm_cpu.cpp.
#include <algorithm>
#include <bit>
#include <cmath>

#include "core/base/parallel.h"
#include "core/tensor/half.h"
#include "kernels/packed_gemm.h"

namespace tensord::kernels {
namespace {

using ops::Precision;

int64_t numbers_per_word(Precision precision) {
  return precision == Precision::kF32 ? 1 : precision == Precision::kBf16 ? 2 : 4;
}

int8_t to_int8(float x, float inverse_scale) {
  if (!std::isfinite(x)) return 0;
  return static_cast<int8_t>(std::clamp(std::nearbyint(x * inverse_scale), -127.0f, 127.0f));
}

}  // namespace

PackedMatrix::PackedMatrix(const Matrix& weight, const float* scale, Precision precision)
    : n_(weight.rows),
      k_(weight.cols),
      words_((k_ + numbers_per_word(precision) - 1) / numbers_per_word(precision)),
      precision_(precision),
      kernels_(tile_kernels(precision)) {
  const int64_t lanes = kernels_.lanes, columns = (n_ + lanes - 1) / lanes * lanes;
  data_ = Tensor::empty(Dims{columns * words_ * 4}, DType::kUInt8);
  if (precision == Precision::kInt8) find_scales(weight, scale);
  const double panel_ns = static_cast<double>(kernels_.panel_columns()) * static_cast<double>(k_);
  parallel_for_cost(panels(), panel_ns, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) pack_panel(weight, scale, i);
  });
  inverse_ = {};
}

int64_t PackedMatrix::vectors(int64_t panel) const {
  const int64_t left = n_ - panel * kernels_.panel_columns();
  return std::min<int64_t>(kTileVectors, (left + kernels_.lanes - 1) / kernels_.lanes);
}

size_t PackedMatrix::size_bytes() const {
  return data_.size_bytes() + scales_.size() * sizeof(float) + offsets_.size() * sizeof(int32_t);
}

// One scale per column of the result, and the sums of its rounded weights.
void PackedMatrix::find_scales(const Matrix& weight, const float* scale) {
  const auto n = static_cast<size_t>(n_);
  scales_.resize(n);
  inverse_.resize(n);
  offsets_.resize(n);
  parallel_for_cost(n_, 2 * static_cast<double>(k_), [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      const float* row = static_cast<const float*>(weight.data) + j * weight.row_stride;
      const float by = scale ? scale[j] : 1.0f;
      float most = 0, zero = 0;  // NaN when a weight is not finite
      for (int64_t i = 0; i < k_; ++i) {
        const float x = row[i * weight.col_stride] * by;
        zero += x * 0.0f;
        most = std::max(most, std::abs(x));
      }
      const auto at = static_cast<size_t>(j);
      scales_[at] = most / 127.0f + zero;
      inverse_[at] = most > 1e-37f && zero == 0 ? 127.0f / most : 0.0f;
      int32_t sum = 0;
      for (int64_t i = 0; i < k_; ++i) sum += to_int8(row[i * weight.col_stride] * by, inverse_[at]);
      offsets_[at] = 128 * sum;
    }
  });
}

void PackedMatrix::pack_panel(const Matrix& weight, const float* scale, int64_t panel) {
  const int64_t width = vectors(panel) * kernels_.lanes, first = panel * kernels_.panel_columns();
  const int64_t columns = std::min(width, n_ - first), per_word = numbers_per_word(precision_);
  auto* out = const_cast<uint32_t*>(this->panel(panel));
  const auto word = [&](const float* at, float by, int64_t i, int64_t j) {
    const auto number = [&](int64_t e) { return i * per_word + e < k_ ? at[e * weight.col_stride] * by : 0.0f; };
    if (precision_ == Precision::kF32) return std::bit_cast<uint32_t>(number(0));
    if (precision_ == Precision::kBf16)
      return static_cast<uint32_t>(BFloat16(number(0)).bits) | static_cast<uint32_t>(BFloat16(number(1)).bits) << 16;
    uint32_t bytes = 0;
    for (int64_t e = 0; e < 4; ++e) {
      const int8_t byte = to_int8(number(e), inverse_[static_cast<size_t>(first + j)]);
      bytes |= static_cast<uint32_t>(static_cast<uint8_t>(byte)) << (8 * e);
    }
    return bytes;
  };
  // A cache line of each column at a time, when columns are what lies together.
  constexpr int64_t kRun = 16;
  for (int64_t begin = 0; begin < words_; begin += kRun) {
    const int64_t end = std::min(begin + kRun, words_);
    for (int64_t j = 0; j < width; ++j) {
      if (j >= columns) {
        for (int64_t i = begin; i < end; ++i) out[i * width + j] = 0;
        continue;
      }
      const float* column = static_cast<const float*>(weight.data) + (first + j) * weight.row_stride;
      const float by = scale ? scale[first + j] : 1.0f;
      for (int64_t i = begin; i < end; ++i)
        out[i * width + j] = word(column + i * per_word * weight.col_stride, by, i, j);
    }
  }
}

}  // namespace tensord::kernels
