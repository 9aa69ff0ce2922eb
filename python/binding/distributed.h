#pragma once

#include "python/binding/python.h"
#include "core/distributed/group/process_group.h"

namespace tensord::python {

// Adds the bindings of DistributedDataParallel and SyncBatchNorm to the submodule _distributed.
void bind_data_parallel(nb::module_& module);

}  // namespace tensord::python
