#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/cuda/address.h"

namespace tensord::kernels {

// A batch of matrices, column by column. Strides in elements.
struct BlasMatrix {
  cuda::DeviceAddress at;
  bool is_transposed = false;  // what is multiplied is the transpose of what lies there; never of c
  int64_t column_stride = 1;   // of neighboring columns in memory
  int64_t batch_stride = 0;
};

enum class BlasEpilogue : int8_t { kNone, kRelu, kGelu };  // kGelu: by tanh

// c = alpha a b + beta c + bias for each batch, by cuBLASLt: a is m × k, b is k × n. float32 and below are summed in
// float32.
struct BlasJob {
  int8_t dtype = 0;                             // of all: float16, bfloat16, float32, float64
  bool allows_tf32 = false;                     // float32 operands may be rounded to TF32
  BlasEpilogue epilogue = BlasEpilogue::kNone;  // of what was summed
  int64_t m = 0, n = 0, k = 0;
  int32_t batches = 1;
  double alpha = 1, beta = 0;
  BlasMatrix a, b, c;
  cuda::DeviceAddress bias;  // m numbers, added to each column; null: none

  // What LibraryTable::plan_product found.
  bool has_algorithm = false;  // without one, the library does not do such products
  uint64_t algorithm[8] = {};
  size_t workspace_bytes = 0;
  cuda::DeviceAddress workspace;  // of at least so many bytes, aligned to 256; the caller's
};

}  // namespace tensord::kernels
