#pragma once

#include <cstdint>

#include "core/tensor/cuda/address.h"
#include "kernels/cuda/pointwise_job.h"

namespace tensord::kernels {

// A line of kernels/complex/formulas.def over the elements of complex tensors.
struct ComplexJob {
  uint8_t formula = 0;  // ComplexFormula
  bool is_double = false;
  int ndim = 0;
  int64_t numel = 0;
  int64_t sizes[kCudaDims] = {};       // outermost first
  int64_t strides[4][kCudaDims] = {};  // out, then x, y, z
  cuda::DeviceAddress out;             // of the formula's type
  cuda::DeviceAddress data[3];         // null: the constant below
  double constants[3][2] = {};
  double numbers[3] = {};
};

}  // namespace tensord::kernels
