#pragma once

#include "server/transport/calls/inference_service.h"
#include "server/transport/grpc/call.h"
#include "server/transport/grpc/server_state.h"

namespace tensord::server {

// Answers ModelConfig on this queue.
void wait_model_config_calls(ServerState& state, InferenceService& service, CallQueue queue);

}  // namespace tensord::server
