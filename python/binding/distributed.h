#pragma once

#include "python/binding/python.h"
#include "core/distributed/group/process_group.h"

namespace tensord::python {

// DistributedDataParallel's and SyncBatchNorm's part of the submodule _distributed.
void bind_data_parallel(nb::module_& module);

}  // namespace tensord::python
