#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/pointwise/formula.h"

// What the elementwise CUDA kernels get; plain data, so that nvcc sees no more of tensord.
namespace tensord::kernels {

inline constexpr int kCudaDims = 12;  // after neighboring dimensions were merged

struct CudaPointwise {
  int64_t numel = 0;
  int ndim = 0;
  bool is_dense = false;               // one dimension, every tensor with stride 1
  int64_t sizes[kCudaDims] = {};       // outermost first
  int64_t strides[4][kCudaDims] = {};  // out, then a, b, c
  void* out = nullptr;
  int8_t out_dtype = 0;      // DType numbers
  const void* data[3] = {};  // null: the constant below
  int8_t dtypes[3] = {};
  double float_constants[3] = {};
  int64_t int_constants[3] = {};
  double floats[3] = {};  // p0 … p2
  int64_t ints[3] = {};
};

using CudaLaunch = void (*)(const CudaPointwise&, cudaStream_t);
struct CudaRows {
  CudaLaunch f32 = nullptr, f64 = nullptr, i64 = nullptr;
};
void fill_arith_cuda(CudaRows* rows);
void fill_math_cuda(CudaRows* rows);
void fill_activation_cuda(CudaRows* rows);
void fill_special_cuda(CudaRows* rows);

}  // namespace tensord::kernels
