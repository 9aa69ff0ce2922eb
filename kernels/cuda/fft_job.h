#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/cuda/address.h"

namespace tensord::kernels {

inline constexpr int kMaxFftRank = 3;

// Batches of dense transforms by cuFFT, not scaled. A half spectrum has n / 2 + 1 numbers in the last dimension.
struct FftJob {
  bool is_double = false, is_forward = true;
  bool has_real_input = false, has_real_output = false;  // at most one
  int rank = 1;
  int64_t sizes[kMaxFftRank] = {};  // of the side that is not halved; at least 1
  int64_t batches = 1;
  cuda::DeviceAddress in, out;  // aligned to complex numbers; of half spectra, `in` is overwritten

  size_t workspace_bytes = 0;     // what LibraryTable::plan_fft found
  cuda::DeviceAddress workspace;  // of so many bytes, aligned to 256; the caller's
};

}  // namespace tensord::kernels
