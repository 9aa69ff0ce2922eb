#pragma once

#include <cstdint>

#include "core/tensor/cuda/address.h"

namespace tensord::cuda {

inline constexpr int kCopyDims = 16;  // after neighboring dimensions were merged

// A copy within a device, for the kernel of CudaApi::copy_strided.
struct StridedCopyJob {
  int64_t numel = 0;
  int ndim = 0;
  int64_t sizes[kCopyDims] = {};  // outermost first
  int64_t to_strides[kCopyDims] = {}, from_strides[kCopyDims] = {};
  DeviceAddress to, from;
  int8_t to_dtype = 0, from_dtype = 0;  // DType numbers
};

}  // namespace tensord::cuda
