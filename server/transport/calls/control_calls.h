#pragma once

#include "server/transport/calls/inference_service.h"
#include "server/transport/grpc/call.h"
#include "server/transport/grpc/server_state.h"

namespace tensord::server {

// Answers calls about the server and its models on this queue.
void wait_control_calls(ServerState& state, InferenceService& service, CallQueue queue);

// Their answers, for other protocols too. Throw Error.
void describe_model(const ServerState& state, const inference::ModelMetadataRequest& request,
                    inference::ModelMetadataResponse& response);
void describe_server(const ServerState& state, inference::ServerMetadataResponse& response);

}  // namespace tensord::server
