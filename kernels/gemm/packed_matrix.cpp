// Weights repacked for the tiles of kernels/gemm/packed_gemm_cpu.cpp.
#include <algorithm>
#include <bit>
#include <cmath>

#include "core/base/parallel.h"
#include "core/base/thread_priority.h"
#include "kernels/base/half_rows.h"
#include "kernels/gemm/packed_gemm.h"

namespace tensord::kernels {
namespace {

using ops::Precision;

constexpr int64_t numbers_per_word(WordType type) {
  return type == WordType::kF32 ? 1 : type == WordType::kInt8 ? 4 : 2;
}

// Keeps halves in 16 bits, which loses nothing, unless they were widened to be multiplied first.
WordType type_of_words(DType dtype, bool is_widened, Precision precision) {
  if (precision != Precision::kF32 || is_widened) return word_type(precision);
  if (dtype == DType::kBFloat16) return WordType::kBf16;
  const bool is_kept = dtype == DType::kFloat16 && tile_kernels(WordType::kF16).lanes > 0;
  return is_kept ? WordType::kF16 : WordType::kF32;
}

// Rounds x / scale. Numbers that are not finite count as 0; their column's scale is NaN.
int32_t to_int8(float x, float inverse_scale) {
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const float scaled = x * inverse_scale;
  const float bounded = std::abs(scaled) <= 127.0f ? scaled : scaled > 0 ? 127.0f : scaled < 0 ? -127.0f : 0.0f;
  return std::bit_cast<int32_t>(bounded + kMagic) - std::bit_cast<int32_t>(kMagic);
}

// A word of `count` numbers, each multiplied by `by`; the rest of the word is zero.
template <WordType type>
uint32_t make_word(const float* at, int64_t stride, int64_t count, float by, float inverse_scale) {
  if constexpr (type == WordType::kF32) return std::bit_cast<uint32_t>(*at * by);
  constexpr int64_t kBits = 32 / numbers_per_word(type);
  uint32_t word = 0;
  for (int64_t e = 0; e < count; ++e) {
    const float x = at[e * stride] * by;
    uint32_t bits = 0;
    if constexpr (type == WordType::kBf16) bits = BFloat16(x).bits;
    if constexpr (type == WordType::kF16) bits = Half(x).bits;
    if constexpr (type == WordType::kInt8) bits = static_cast<uint32_t>(to_int8(x, inverse_scale)) & 0xffu;
    word |= bits << (kBits * e);
  }
  return word;
}

// Columns of w^T in place, and the destination of their words.
struct PanelSource {
  const float* data;
  int64_t column_stride, stride;  // from column to column, and along k
  int64_t columns, width, k;
  const float *by, *inverse_scale;  // per column, or null
  uint32_t* out;
};

template <WordType type>
void pack_columns(const PanelSource& source) {
  constexpr int64_t kPerWord = numbers_per_word(type);
  const int64_t whole = source.k / kPerWord, words = (source.k + kPerWord - 1) / kPerWord;
  const auto put = [&](int64_t i, int64_t j, int64_t count) {
    source.out[i * source.width + j] =
        make_word<type>(source.data + j * source.column_stride + i * kPerWord * source.stride, source.stride, count,
                        source.by ? source.by[j] : 1.0f, type == WordType::kInt8 ? source.inverse_scale[j] : 0.0f);
  };
  // A few cache lines of each column at a time, where columns are contiguous.
  const int64_t run = source.stride == 1 ? 64 : 1, run_numbers = run * kPerWord;
  for (int64_t begin = 0; begin < whole; begin += run) {
    const int64_t end = std::min(begin + run, whole);
    for (int64_t j = 0; j < source.columns; ++j) {
      const float* later = source.data + (j + 4) * source.column_stride + begin * kPerWord;
      for (int64_t e = 0; source.stride == 1 && e < run_numbers; e += 16) __builtin_prefetch(later + e);
      for (int64_t i = begin; i < end; ++i) put(i, j, kPerWord);
    }
  }
  if (whole < words) {
    for (int64_t j = 0; j < source.columns; ++j) put(whole, j, source.k - whole * kPerWord);
  }
  for (int64_t i = 0; i < words; ++i)
    std::fill(source.out + i * source.width + source.columns, source.out + (i + 1) * source.width, 0u);
}

// For each vector of pairs, the first numbers and then the second ones, so that converted numbers are contiguous.
void split_pairs(uint32_t* words, int64_t count, int64_t lanes) {
  std::vector<uint16_t> second(static_cast<size_t>(lanes));
  for (uint32_t* vector = words; vector < words + count; vector += lanes) {
    auto* const halves = reinterpret_cast<uint16_t*>(vector);
    for (int64_t i = 0; i < lanes; ++i) second[static_cast<size_t>(i)] = halves[2 * i + 1];
    for (int64_t i = 0; i < lanes; ++i) halves[i] = halves[2 * i];
    std::copy(second.begin(), second.end(), halves + lanes);
  }
}

template <class T>
void widen_rows(const Matrix& weight, int64_t first, int64_t rows, float* out) {
  for (int64_t r = first; r < first + rows; ++r, out += weight.cols) {
    const T* from = static_cast<const T*>(weight.data) + r * weight.row_stride;
    if (weight.col_stride == 1) {
      widen_row(from, out, weight.cols);
    } else {
      for (int64_t i = 0; i < weight.cols; ++i) out[i] = from[i * weight.col_stride];
    }
  }
}

// Some rows in float32: in place, or converted into `memory`.
Matrix wide_rows(const Matrix& weight, DType dtype, int64_t first, int64_t rows, std::vector<float>& memory) {
  if (dtype == DType::kFloat32) {
    float* const at = static_cast<float*>(weight.data) + first * weight.row_stride;
    return {at, rows, weight.cols, weight.row_stride, weight.col_stride};
  }
  memory.resize(static_cast<size_t>(rows * weight.cols));
  if (dtype == DType::kBFloat16) {
    widen_rows<BFloat16>(weight, first, rows, memory.data());
  } else {
    check_internal(dtype == DType::kFloat16, "weights of ", name_of(dtype), " are packed");
    widen_rows<Half>(weight, first, rows, memory.data());
  }
  return {memory.data(), rows, weight.cols, weight.cols, 1};
}

}  // namespace

PackedMatrix::PackedMatrix(const Matrix& weight, DType dtype, const float* scale, Precision precision, bool widens)
    : n_(weight.rows),
      k_(weight.cols),
      type_(type_of_words(dtype, scale != nullptr || widens, precision)),
      words_((k_ + numbers_per_word(type_) - 1) / numbers_per_word(type_)),
      kernels_(tile_kernels(type_)) {
  const int64_t lanes = kernels_.lanes, columns = (n_ + lanes - 1) / lanes * lanes;
  data_ = Tensor::empty(Dims{columns * words_ * 4}, DType::kUInt8);
  if (type_ == WordType::kInt8) find_scales(weight, dtype, scale);
  const double panel_ns = static_cast<double>(kernels_.panel_columns()) * static_cast<double>(k_);
  parallel_for_cost(panels(), panel_ns, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      pack_panel(weight, dtype, scale, i);
      let_others_run();
    }
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

// One scale for each column of the result, and the sums of its rounded weights.
void PackedMatrix::find_scales(const Matrix& weight, DType dtype, const float* scale) {
  const auto n = static_cast<size_t>(n_);
  scales_.resize(n);
  inverse_.resize(n);
  offsets_.resize(n);
  parallel_for_cost(n_, 2 * static_cast<double>(k_), [&](int64_t begin, int64_t end) {
    std::vector<float> memory;
    for (int64_t j = begin; j < end; ++j) {
      const Matrix wide = wide_rows(weight, dtype, j, 1, memory);
      const auto* row = static_cast<const float*>(wide.data);
      const float by = scale ? scale[j] : 1.0f;
      float max = 0, zero = 0;  // NaN when a weight is not finite
      for (int64_t i = 0; i < k_; ++i) {
        const float x = row[i * wide.col_stride] * by;
        zero += x * 0.0f;
        max = std::max(max, std::abs(x));
      }
      const auto at = static_cast<size_t>(j);
      scales_[at] = max / 127.0f + zero;
      inverse_[at] = max > 1e-37f && zero == 0 ? 127.0f / max : 0.0f;
      int32_t sum = 0;
      for (int64_t i = 0; i < k_; ++i) sum += to_int8(row[i * wide.col_stride] * by, inverse_[at]);
      offsets_[at] = 128 * sum;
    }
  });
}

void PackedMatrix::pack_panel(const Matrix& weight, DType dtype, const float* scale, int64_t panel) {
  const int64_t width = vectors(panel) * kernels_.lanes, first = panel * kernels_.panel_columns();
  std::vector<float> memory;
  const Matrix wide = wide_rows(weight, dtype, first, std::min(width, n_ - first), memory);
  const PanelSource source{static_cast<const float*>(wide.data),
                           wide.row_stride,
                           wide.col_stride,
                           wide.rows,
                           width,
                           k_,
                           scale ? scale + first : nullptr,
                           inverse_.empty() ? nullptr : inverse_.data() + first,
                           const_cast<uint32_t*>(this->panel(panel))};
  switch (type_) {
    case WordType::kF32: return pack_columns<WordType::kF32>(source);
    case WordType::kBf16: return pack_columns<WordType::kBf16>(source);
    case WordType::kF16:
      pack_columns<WordType::kF16>(source);
      return split_pairs(source.out, words_ * width, kernels_.lanes);
    case WordType::kInt8: return pack_columns<WordType::kInt8>(source);
  }
}

}  // namespace tensord::kernels
