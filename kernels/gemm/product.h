#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace tensord::kernels {

// A matrix product whose operands both come with the run; strides in elements, any of them. The columns
// of the result are dense.
struct ProductShape {
  int64_t rows, columns, depth;
  int64_t left_row, left_depth;
  int64_t right_depth, right_column;
  int64_t out_row;
  double alpha = 1;
  bool accumulates = false;  // out += alpha * left @ right
};

// Elements that multiply needs at most, aligned to 64 bytes.
constexpr int64_t kMaxProductScratch = 256 * 512 + 96 * 64 + 96 * 256;

// Rows [begin, end). A row's result does not depend on which rows are done with it.
void multiply(const ProductShape& shape, const float* left, const float* right, float* out, int64_t begin, int64_t end,
              float* scratch);
void multiply(const ProductShape& shape, const double* left, const double* right, double* out, int64_t begin,
              int64_t end, double* scratch);

// kMaxProductScratch elements of the calling thread's own, for one multiply at a time; kept until the thread ends.
// Pages are taken as they are used.
template <class T>
T* thread_product_scratch() {
  struct Free {
    void operator()(T* memory) const { std::free(memory); }
  };
  thread_local const std::unique_ptr<T, Free> scratch = [] {
    void* memory = std::aligned_alloc(64, kMaxProductScratch * sizeof(T));
    if (!memory) throw std::bad_alloc();
    return std::unique_ptr<T, Free>(static_cast<T*>(memory));
  }();
  return scratch.get();
}

}  // namespace tensord::kernels
