#pragma once

#include <cstdint>

#include "core/tensor/cuda/address.h"
#include "core/tensor/cuda/error_word.h"

// What the elementwise CUDA kernels get; plain data, so that nvcc sees no more of tensord.
namespace tensord::kernels {

inline constexpr int kCudaDims = 12;  // after neighboring dimensions were merged

struct PointwiseJob {
  uint16_t formula = 0;     // Formula
  int8_t compute = 0;       // DType numbers: float32, float64 or int64
  bool is_dense = false;    // one dimension, every tensor with stride 1
  bool is_aligned = false;  // and each begins where four elements may be taken at once
  bool checks_divisor = false;
  int8_t out_dtype = 0;
  int8_t dtypes[3] = {};
  int ndim = 0;
  int64_t numel = 0;
  int64_t sizes[kCudaDims] = {};       // outermost first
  int64_t strides[4][kCudaDims] = {};  // out, then a, b, c
  cuda::DeviceAddress out;
  cuda::DeviceAddress data[3];  // null: the constant below
  double float_constants[3] = {};
  int64_t int_constants[3] = {};
  double floats[3] = {};  // p0 … p2
  int64_t ints[3] = {};
  cuda::ErrorSink errors;
};

}  // namespace tensord::kernels
