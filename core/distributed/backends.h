#pragma once

#include <string>

#include "core/distributed/group/backend.h"

namespace tensord::distributed {

// Backends by the name that users give: "local" (threads of this process), "gloo" (processes and hosts; `master`, a
// name or address, is who this process listens for), "nccl" (CUDA devices; that of LOCAL_RANK). Throws Error:
// kInvalidArgument for another name, kUnimplemented where this build or machine has not what it wants. MPI gives ranks
// itself: make_mpi_world().
BackendFactory backends_by_name(const std::string& name, const std::string& master);

}  // namespace tensord::distributed
