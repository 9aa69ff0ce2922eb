#pragma once

#include <string>

#include "core/distributed/group/backend.h"

namespace tensord::distributed {

// Returns the backend factory of a name: "local" (threads of this process), "gloo" (processes and hosts; this process
// listens at the address that reaches `master`, a name or an address) or "nccl" (CUDA devices; LOCAL_RANK selects the
// device). Throws Error: kInvalidArgument for an unknown name, kUnimplemented if this build or machine lacks what the
// backend needs. MPI assigns ranks itself: see make_mpi_world().
BackendFactory backends_by_name(const std::string& name, const std::string& master);

}  // namespace tensord::distributed
