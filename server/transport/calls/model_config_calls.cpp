#include "server/transport/calls/model_config_calls.h"

#include "server/transport/calls/model_config_message.h"
#include "server/transport/grpc/unary_call.h"

namespace tensord::server {

void wait_model_config_calls(ServerState& state, InferenceService& service, CallQueue queue) {
  using inference::ModelConfigRequest, inference::ModelConfigResponse;
  wait_unary<ModelConfigRequest, ModelConfigResponse>(
      queue, CallGroup::kModelConfig, TENSORD_START(service, ModelConfig),
      on_demand(state.repository, [&state](const ModelConfigRequest& request, ModelConfigResponse& response) {
        *response.mutable_config() = to_model_config(*state.repository.find(request.name(), request.version()));
      }));
}

}  // namespace tensord::server
