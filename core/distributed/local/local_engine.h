#pragma once

#include "core/distributed/group/engine.h"

namespace tensord::distributed {

// Engines whose ranks are threads of this process: all ranks of a group have their engine from one factory. Reductions
// add in the order of the ranks, so every rank has the same bits.
EngineFactory local_engines();

}  // namespace tensord::distributed
