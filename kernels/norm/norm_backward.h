#pragma once

#include <cstdint>

#include "core/tensor/tensor.h"
#include "kernels/norm/norm.h"

namespace tensord::kernels {

// Elements of a row of layer_norm. Throws Error where the shape is not that of the last dimensions of x.
int64_t normalized_length(const Tensor& x, const Dims& shape);

// The backward of normalize_row for one dense row: fills dx, adds to dweight and dbias; each of the three may be
// null, and so may the weight.
void normalize_row_backward(const float* g, const float* x, const float* weight, Moments moments, float* dx,
                            float* dweight, float* dbias, int64_t count);
void normalize_row_backward(const double* g, const double* x, const double* weight, Moments moments, double* dx,
                            double* dweight, double* dbias, int64_t count);

}  // namespace tensord::kernels
