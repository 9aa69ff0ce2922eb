#pragma once

#include "core/distributed/group/backend.h"

namespace tensord::distributed {

// Backends whose ranks are threads of this process: all ranks of a group have their backend from one factory.
// Reductions add in the order of the ranks, so every rank has the same bits.
BackendFactory local_backends();

}  // namespace tensord::distributed
