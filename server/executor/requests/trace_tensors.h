#pragma once

#include <span>

#include "server/executor/model/model.h"
#include "server/tracing/request_trace.h"

namespace tensord::server {

// Adds tensors as text to a trace that records them; only the first elements of large tensors.
void trace_tensors(RequestTrace& trace, TensorActivity activity, std::span<const InferTensor> tensors);

}  // namespace tensord::server
