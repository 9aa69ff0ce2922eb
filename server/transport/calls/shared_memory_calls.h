#pragma once

#include "server/transport/calls/inference_service.h"
#include "server/transport/grpc/call.h"
#include "server/transport/grpc/server_state.h"

namespace tensord::server {

// Answers the calls for system and CUDA shared memory on this queue.
void wait_shared_memory_calls(ServerState& state, InferenceService& service, CallQueue queue);

}  // namespace tensord::server
