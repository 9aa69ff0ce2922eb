#pragma once

#include <cstdint>

namespace tensord::kernels {

// An f32 matrix product whose operands both come with the run; strides in elements, any of them. The columns
// of the result are dense.
struct ProductShape {
  int64_t rows, columns, depth;
  int64_t left_row, left_depth;
  int64_t right_depth, right_column;
  int64_t out_row;
  float alpha = 1;
  bool accumulates = false;  // out += alpha * left @ right
};

// Floats that multiply needs, aligned to 64 bytes.
int64_t product_scratch(const ProductShape& shape);
// Rows [begin, end). A row's result does not depend on which rows are done with it.
void multiply(const ProductShape& shape, const float* left, const float* right, float* out, int64_t begin, int64_t end,
              float* scratch);

}  // namespace tensord::kernels
