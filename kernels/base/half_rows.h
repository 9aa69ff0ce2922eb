#pragma once

#include <cstdint>

#include "core/tensor/half.h"

namespace tensord::kernels {

// Rows of halves to float32 and back, rounded to the nearest, ties to even; by vectors of the processor. NaN stays NaN.
void widen_row(const Half* from, float* to, int64_t count);
void widen_row(const BFloat16* from, float* to, int64_t count);
void narrow_row(const float* from, Half* to, int64_t count);
void narrow_row(const float* from, BFloat16* to, int64_t count);

}  // namespace tensord::kernels
