#pragma once

#include "core/base/work_thread.h"
#include "server/transport/call.h"
#include "server/transport/inference_service.h"
#include "server/transport/server_state.h"

namespace tensord::server {

// Answers RepositoryIndex, RepositoryModelLoad and RepositoryModelUnload on this queue from now on; `threads` do the
// work, which may take as long as a load and its warm-up.
void wait_repository_calls(ServerState& state, InferenceService& service, WorkThread& threads, CallQueue queue);

// What they do, for other protocols too; `request` of a load is given up. Throw Error.
void list_models(const ServerState& state, const inference::RepositoryIndexRequest& request,
                 inference::RepositoryIndexResponse& response);
void load_model(ServerState& state, inference::RepositoryModelLoadRequest& request);
void unload_model(ServerState& state, const inference::RepositoryModelUnloadRequest& request);

}  // namespace tensord::server
