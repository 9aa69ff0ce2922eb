#pragma once

#include <span>

#include "server/executor/model/model.h"
#include "server/tracing/request_trace.h"

namespace tensord::server {

// Adds tensors to a trace that wants them, as text; of large ones only the first elements.
void trace_tensors(RequestTrace& trace, TensorActivity activity, std::span<const InferTensor> tensors);

}  // namespace tensord::server
