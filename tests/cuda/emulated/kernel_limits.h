#pragma once

#include <cstddef>
#include <string>

namespace tensord::cuda::emulated {

// What a kernel takes of a chip, from the table that tests/cuda/kernel_limits.py made of libtensord_cuda.so: beside
// this library as kernel_limits.txt, or the file that TENSORD_CUDA_LIMITS names. 0 where there is no table, or no such
// kernel in it.
struct KernelLimits {
  int registers = 0;        // of a thread
  size_t shared_bytes = 0;  // static
};
// REQUIRES: `kernel` is a function of this library.
KernelLimits limits_of(const void* kernel);

}  // namespace tensord::cuda::emulated
