#pragma once

#include "core/base/work_thread.h"
#include "server/transport/calls/inference_service.h"
#include "server/transport/grpc/call.h"
#include "server/transport/grpc/server_state.h"

namespace tensord::server {

// Threads for these calls: a load takes as long as the model and its warm-up, an unload as long as the model's
// requests. Neither blocks the index or the other one.
struct RepositoryThreads {
  WorkThread index{1};
  WorkThread loads{32};
  WorkThread unloads{8};
};

// Answers RepositoryIndex, RepositoryModelLoad and RepositoryModelUnload on this queue.
void wait_repository_calls(ServerState& state, InferenceService& service, RepositoryThreads& threads, CallQueue queue);

// Their implementation, for other protocols too. A load consumes its `request`. Throw Error.
void list_models(const ServerState& state, const inference::RepositoryIndexRequest& request,
                 inference::RepositoryIndexResponse& response);
void load_model(ServerState& state, inference::RepositoryModelLoadRequest& request);
void unload_model(ServerState& state, const inference::RepositoryModelUnloadRequest& request);

}  // namespace tensord::server
