#pragma once

#include <cstdint>

#include "core/tensor/half.h"

namespace tensord::kernels {

// Conversions of rows of float16 and bfloat16 to float32 and back, rounded to nearest, ties to even, with the
// processor's vectors. NaN stays NaN.
void widen_row(const Half* from, float* to, int64_t count);
void widen_row(const BFloat16* from, float* to, int64_t count);
void narrow_row(const float* from, Half* to, int64_t count);
void narrow_row(const float* from, BFloat16* to, int64_t count);

}  // namespace tensord::kernels
