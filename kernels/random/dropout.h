#pragma once

#include <cstdint>

#include "core/tensor/dtype.h"

namespace tensord::kernels {

// 1 / (1 - p), rounded as a division in the compute type.
double kept_scale(double p, DType dtype);

// Of each pair of 32 random bits, the upper half first: whether the number in [0, 1) that PyTorch makes of it is
// below `probability`.
void draw_below(const uint32_t* bits, double probability, uint8_t* kept, int64_t count);

// out = x scale where kept, x times 0 (NaN stays) elsewhere.
void apply_mask(const float* x, const uint8_t* kept, float scale, float* out, int64_t count);
void apply_mask(const double* x, const uint8_t* kept, double scale, double* out, int64_t count);

}  // namespace tensord::kernels
