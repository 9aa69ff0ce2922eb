#pragma once

#include "core/base/work_thread.h"
#include "server/transport/calls/inference_service.h"
#include "server/transport/grpc/call.h"
#include "server/transport/grpc/server_state.h"

namespace tensord::server {

// Who works on these calls: a load takes as long as the model and its warm-up, an unload as long as the requests that
// the model has, and neither keeps the index or the other waiting.
struct RepositoryThreads {
  WorkThread index{1};
  WorkThread loads{32};
  WorkThread unloads{8};
};

// Answers RepositoryIndex, RepositoryModelLoad and RepositoryModelUnload on this queue from now on.
void wait_repository_calls(ServerState& state, InferenceService& service, RepositoryThreads& threads, CallQueue queue);

// What they do, for other protocols too; `request` of a load is given up. Throw Error.
void list_models(const ServerState& state, const inference::RepositoryIndexRequest& request,
                 inference::RepositoryIndexResponse& response);
void load_model(ServerState& state, inference::RepositoryModelLoadRequest& request);
void unload_model(ServerState& state, const inference::RepositoryModelUnloadRequest& request);

}  // namespace tensord::server
