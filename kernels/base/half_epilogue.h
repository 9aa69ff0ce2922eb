#pragma once

#include <cstdint>
#include <limits>

#include "core/tensor/half.h"

namespace tensord::kernels {

// The steps between rows of float32 results and the halves that are stored. Each step takes halves and rounds to
// halves, as a call of its own would.
struct HalfEpilogue {
  const float* scale = nullptr;  // null: no affine step
  const float* shift = nullptr;
  bool has_row_of_scales = false;  // one for each element of the row, or one for all
  const void* other = nullptr;     // float16 or bfloat16 to add; null: none
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();  // a NaN stays
};

// `rows` of `columns` floats, `stride` floats from row to row.
struct FloatRows {
  const float* data;
  int64_t rows, columns, stride;
};

// Writes rows of float16 or bfloat16, `stride` elements from row to row; `other` has the same layout. All rows have the
// same scales.
void finish_rows(const FloatRows& from, const HalfEpilogue& steps, Half* to, int64_t stride);
void finish_rows(const FloatRows& from, const HalfEpilogue& steps, BFloat16* to, int64_t stride);

}  // namespace tensord::kernels
