#pragma once

#include <cstdint>

namespace tensord::kernels {

// c = a @ b, or c += a @ b, of row-major or transposed matrices of bfloat16; strides in elements.
struct Bf16Product {
  int64_t rows, columns, depth;
  const void *a, *b;
  void* c;
  int64_t a_row_stride, a_column_stride, b_row_stride, b_column_stride, c_row_stride;  // c is row-major
  bool adds;
};

// By oneDNN, where the processor multiplies bfloat16 and the product is large enough; sums are in float32. Returns
// false, and does nothing, otherwise. Uses the caller's thread budget.
bool try_bf16_product(const Bf16Product& product);

}  // namespace tensord::kernels
