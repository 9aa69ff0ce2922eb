#pragma once

#include <string>

#include "core/distributed/group/backend.h"
#include "core/distributed/nccl/nccl_api.h"

namespace tensord::distributed {

struct NcclOptions {
  // Of what has no tensors (barriers, objects): the host's number of a CUDA device. Negative: LOCAL_RANK among those
  // that are there.
  int device = -1;
  std::string library;  // path of libnccl.so.2; empty: see nccl_places()
};

// Backends over NCCL, for tensors on CUDA devices: a communicator between the ranks' devices, made with the first
// operation on them. NCCL's connections are neither encrypted nor authenticated. It moves every dtype, and reduces
// int8, uint8, int32, int64, floating and complex ones (by their parts: sum, avg, premul_sum) and bool (sum and max are
// `or`, product and min `and`), not int16 and no bits; what it does with NaN in min and max, and how it rounds avg, is
// NCCL's. Messages are of one known rank, in order.
//
// Throws Error{kUnimplemented}: there is no library, no function, or an old version (open_nccl), or no CUDA device.
BackendFactory nccl_backends(const NcclOptions& options = {});
// Whether nccl_backends() would not throw.
bool has_nccl();

// The same over any table of functions, for devices of another kind: for tests. `api` lives as long as the backends.
BackendFactory nccl_backends_over(const NcclApi& api, DeviceKind kind, int device);

}  // namespace tensord::distributed
