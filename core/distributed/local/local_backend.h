#pragma once

#include "core/distributed/group/backend.h"

namespace tensord::distributed {

// Backends whose ranks are threads of this process. All ranks of a group use one factory. Reductions add in rank order,
// so every rank gets the same bits.
BackendFactory local_backends();

}  // namespace tensord::distributed
