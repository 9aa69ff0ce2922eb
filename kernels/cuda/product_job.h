#pragma once

#include <cstdint>

#include "core/tensor/cuda/address.h"

namespace tensord::kernels {

inline constexpr int kProductDims = 8;  // of batches, after neighbors were merged

// c = alpha a b + beta c for each batch; c is not read when beta is 0. Strides in elements, of any order.
struct ProductJob {
  int8_t dtype = 0;
  int batch_dims = 0;
  int64_t m = 0, n = 0, k = 0, batches = 1;
  int64_t a_row = 0, a_column = 0, b_row = 0, b_column = 0, c_row = 0, c_column = 0;
  int64_t sizes[kProductDims] = {}, a_strides[kProductDims] = {}, b_strides[kProductDims] = {},
          c_strides[kProductDims] = {};
  double alpha = 1, beta = 0;
  cuda::DeviceAddress a, b, c;
};

}  // namespace tensord::kernels
