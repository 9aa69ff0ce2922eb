#pragma once

#include "core/tensor/tensor.h"

namespace tensord::kernels {

// int64 [2, count]: rows and columns of the elements of a matrix on one side of a diagonal and on it, row by row.
Tensor indices_of_triangle(int64_t rows, int64_t columns, int64_t offset, bool is_lower);

}  // namespace tensord::kernels
