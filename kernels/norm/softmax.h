#pragma once

#include <cstdint>

namespace tensord::kernels {

// Softmax (or its logarithm) of one dense row; `in` may be `out`.
void softmax_row(const float* in, float* out, int64_t count, bool is_log);
void softmax_row(const double* in, double* out, int64_t count, bool is_log);

// Softmax down `rows` rows, in each of `count` columns that are neighbors; steps from row to row in
// elements. `in` may be `out`.
void softmax_columns(const float* in, int64_t in_step, float* out, int64_t out_step, int64_t rows, int64_t count,
                     bool is_log);

// Their backward from the results y: y (g - sum(g y)), and g - exp(y) sum(g). `out` may be `g` or `y`.
void softmax_backward_row(const float* g, const float* y, float* out, int64_t count, bool is_log);
void softmax_backward_row(const double* g, const double* y, double* out, int64_t count, bool is_log);
// At most 256 columns.
void softmax_backward_columns(const float* g, const float* y, float* out, int64_t rows, int64_t step, int64_t count,
                              bool is_log);
void softmax_backward_columns(const double* g, const double* y, double* out, int64_t rows, int64_t step, int64_t count,
                              bool is_log);

}  // namespace tensord::kernels
