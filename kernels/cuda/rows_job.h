#pragma once

#include <cstdint>

#include "core/tensor/cuda/address.h"

namespace tensord::kernels {

inline constexpr int kRowDims = 12;  // of the lines, after neighbors were merged

// Softmax, or its backward, along lines of `length` elements: out and in lie anywhere.
struct SoftmaxJob {
  bool is_log = false, is_backward = false;
  int8_t loop = 0, in_dtype = 0, y_dtype = 0, out_dtype = 0;
  int dims = 0;
  int64_t lines = 0, length = 0, in_step = 0, y_step = 0, out_step = 0;
  int64_t sizes[kRowDims] = {}, in_strides[kRowDims] = {}, y_strides[kRowDims] = {}, out_strides[kRowDims] = {};
  cuda::DeviceAddress in;  // backward: the incoming gradient
  cuda::DeviceAddress y;   // backward: the result
  cuda::DeviceAddress out;
};

// Rows of a row-major tensor are normalized to mean 0 and variance 1, then scaled. Element i of row r has the weight
// of (r % groups) * (length / inner) + i / inner: of layer norm groups and inner are 1.
struct NormJob {
  int8_t loop = 0, dtype = 0, weight_dtype = 0, bias_dtype = 0, stats_dtype = 0;
  int64_t rows = 0, length = 0, groups = 1, inner = 1;
  double eps = 0;
  cuda::DeviceAddress in, out, weight, bias;
  cuda::DeviceAddress mean, rstd;  // a row each; null: not asked for
};

}  // namespace tensord::kernels
