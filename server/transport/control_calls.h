#pragma once

#include "protos/inference.grpc.pb.h"
#include "server/transport/call.h"
#include "server/transport/server_state.h"

namespace tensord::server {

// ModelInfer arrives as bytes, everything else as messages.
using InferenceService = inference::GRPCInferenceService::WithRawMethod_ModelInfer<
    inference::GRPCInferenceService::WithAsyncMethod_ServerLive<
        inference::GRPCInferenceService::WithAsyncMethod_ServerReady<
            inference::GRPCInferenceService::WithAsyncMethod_ModelReady<
                inference::GRPCInferenceService::WithAsyncMethod_ServerMetadata<
                    inference::GRPCInferenceService::WithAsyncMethod_ModelMetadata<
                        inference::GRPCInferenceService::Service>>>>>>;

// Answers the calls about the server and its models on this queue from now on.
void wait_control_calls(ServerState& state, InferenceService& service, CallQueue queue);

}  // namespace tensord::server
