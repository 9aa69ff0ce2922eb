#pragma once

#include "server/transport/call.h"
#include "server/transport/inference_service.h"
#include "server/transport/server_state.h"

namespace tensord::server {

// Answers TraceSetting and LogSettings on this queue from now on.
void wait_settings_calls(ServerState& state, InferenceService& service, CallQueue queue);

}  // namespace tensord::server
