#pragma once

#include <cstdint>

namespace tensord::kernels {

// to[c * to_step + r] = from[r * from_step + c] for r < rows and c < columns, on the calling thread.
void transpose_floats(const float* from, int64_t from_step, int64_t rows, int64_t columns, float* to, int64_t to_step);

// Images in planes, [batch][channels][pixels], to pixels, [batch][pixels][channels], on all threads.
void planes_to_pixels(const float* from, int64_t batch, int64_t channels, int64_t pixels, float* to);
void pixels_to_planes(const float* from, int64_t batch, int64_t channels, int64_t pixels, float* to);

}  // namespace tensord::kernels
