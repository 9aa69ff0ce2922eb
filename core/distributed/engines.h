#pragma once

#include <string>

#include "core/distributed/group/engine.h"

namespace tensord::distributed {

// Engines by the name that users give: "local" (threads of this process), "gloo" (processes and hosts; `master`, a name
// or address, is who this process listens for), "nccl" (CUDA devices; that of LOCAL_RANK). Throws Error:
// kInvalidArgument for another name, kUnimplemented where this build or machine has not what it wants. MPI gives ranks
// itself: make_mpi_world().
EngineFactory engines_by_name(const std::string& name, const std::string& master);

}  // namespace tensord::distributed
