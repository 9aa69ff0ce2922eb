#pragma once

#include "server/transport/calls/inference_service.h"
#include "server/transport/grpc/call.h"
#include "server/transport/grpc/server_state.h"

namespace tensord::server {

// Answers the calls about system and CUDA shared memory on this queue from now on.
void wait_shared_memory_calls(ServerState& state, InferenceService& service, CallQueue queue);

}  // namespace tensord::server
