#pragma once

#include <string>

#include "core/distributed/group/backend.h"
#include "core/distributed/nccl/nccl_api.h"

namespace tensord::distributed {

struct NcclOptions {
  // The CUDA device index for operations without tensors (barriers, objects). Negative: LOCAL_RANK selects one of the
  // available devices.
  int device = -1;
  std::string library;  // path of libnccl.so.2; empty: see nccl_places()
};

// Backends over NCCL, for tensors on CUDA devices. A communicator between the ranks' devices is created with the first
// operation on them. NCCL's connections are neither encrypted nor authenticated. It transfers every dtype, and reduces
// int8, uint8, int32, int64, floating and complex elements (by real and imaginary part: sum, avg, premul_sum) and bool
// (sum and max are `or`, product and min are `and`); int16 and bitwise ops are not supported. NaN in min and max, and
// the rounding of avg, follow NCCL. A recv needs a known rank; messages arrive in order.
//
// Throws Error{kUnimplemented} if there is no usable library (open_nccl) or no CUDA device.
BackendFactory nccl_backends(const NcclOptions& options = {});
// Whether nccl_backends() would succeed.
bool has_nccl();

// The same over any function table, for devices of another kind: for tests. `api` must outlive the backends.
BackendFactory nccl_backends_over(const NcclApi& api, DeviceKind kind, int device);

}  // namespace tensord::distributed
