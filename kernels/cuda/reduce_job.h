#pragma once

#include <cstdint>

#include "core/tensor/cuda/address.h"

namespace tensord::kernels {

inline constexpr int kReduceDims = 12;  // kept, and reduced, after neighbors were merged

// Each of `outputs` results is what `inner` elements are together; see Reduction in kernels/reduce/reduce.h.
struct ReduceJob {
  int8_t reducer = 0, loop = 0;  // Reducer; DType numbers: float32, float64 or int64
  int8_t in_dtype = 0, out_dtype = 0;
  bool by_columns = false;  // neighbors are results of their own: one thread for each
  int kept_dims = 0, inner_dims = 0, parts = 1;
  int64_t outputs = 0, inner = 0;
  int64_t kept_sizes[kReduceDims] = {}, kept_in[kReduceDims] = {}, kept_out[kReduceDims] = {},
          kept_center[kReduceDims] = {};
  int64_t inner_sizes[kReduceDims] = {}, inner_in[kReduceDims] = {};
  double power = 0, scale = 1, root = 1;
  cuda::DeviceAddress in, out;
  cuda::DeviceAddress centers;  // float64; null: 0
  cuda::DeviceAddress partial;  // outputs * parts accumulators, where parts > 1
};

}  // namespace tensord::kernels
