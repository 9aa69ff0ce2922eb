#pragma once

#include <cstdint>

namespace tensord::kernels {

// Softmax (or its logarithm) of one dense lane; `in` may be `out`.
void softmax_lane(const float* in, float* out, int64_t count, bool is_log);
void softmax_lane(const double* in, double* out, int64_t count, bool is_log);

// Softmax down `rows` rows, in each of `count` columns that are neighbours; steps from row to row in
// elements. `in` may be `out`.
void softmax_columns(const float* in, int64_t in_step, float* out, int64_t out_step, int64_t rows, int64_t count,
                     bool is_log);

}  // namespace tensord::kernels
