#pragma once

#include "core/base/work_thread.h"
#include "server/transport/call.h"
#include "server/transport/inference_service.h"
#include "server/transport/server_state.h"

namespace tensord::server {

// Answers RepositoryIndex, RepositoryModelLoad and RepositoryModelUnload on this queue from now on; `threads` do the
// work, which may take as long as a load and its warm-up.
void wait_repository_calls(ServerState& state, InferenceService& service, WorkThread& threads, CallQueue queue);

}  // namespace tensord::server
