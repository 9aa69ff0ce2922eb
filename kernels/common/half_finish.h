#pragma once

#include <cstdint>

#include "core/tensor/half.h"

namespace tensord::kernels {

// What is done to a row of results in float32 on their way into halves. Each step takes halves and rounds to halves, as
// a call of its own would.
struct HalfFinish {
  const float* scale = nullptr;  // null: no affine step
  const float* shift = nullptr;
  bool has_row_of_scales = false;  // one for each element of the row, or one for all
  const void* other = nullptr;     // halves that are added; null: none
  bool has_relu = false;
};

void finish_row(const float* from, const HalfFinish& finish, Half* to, int64_t count);
void finish_row(const float* from, const HalfFinish& finish, BFloat16* to, int64_t count);

}  // namespace tensord::kernels
