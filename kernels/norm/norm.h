#pragma once

#include <cstdint>

namespace tensord::kernels {

// Mean and 1 / sqrt(variance + eps) of one dense row.
struct Moments {
  double mean, rstd;
};
Moments row_moments(const float* in, int64_t count, double eps);
Moments row_moments(const double* in, int64_t count, double eps);

// out = (in - mean) * rstd * weight + bias; weight and bias may be null; `in` may be `out`.
void normalize_row(const float* in, Moments moments, const float* weight, const float* bias, float* out, int64_t count);
void normalize_row(const double* in, Moments moments, const double* weight, const double* bias, double* out,
                   int64_t count);
// out = in * scale + shift
void affine_row(const float* in, double scale, double shift, float* out, int64_t count);
void affine_row(const double* in, double scale, double shift, double* out, int64_t count);
// The same over `rows` rows of `channels` neighbors, each with its own scale and shift.
void affine_rows(const float* in, const float* scale, const float* shift, float* out, int64_t rows, int64_t channels);

}  // namespace tensord::kernels
