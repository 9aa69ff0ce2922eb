#pragma once

#include <cstdint>

namespace tensord::kernels {

// Softmax (or its logarithm) of one dense lane; `in` may be `out`.
void softmax_lane(const float* in, float* out, int64_t count, bool is_log);
void softmax_lane(const double* in, double* out, int64_t count, bool is_log);

}  // namespace tensord::kernels
