#pragma once

#include <string>

#include "protos/health.grpc.pb.h"
#include "server/transport/calls/health_watch.h"
#include "server/transport/grpc/call.h"
#include "server/transport/grpc/server_state.h"

namespace tensord::server {

// Status of the whole server (""), of a service, or of a model, by name.
grpc::health::v1::HealthCheckResponse::ServingStatus health_of(const ServerState& state, const std::string& service);

// Both calls arrive as bytes, like those of InferenceService.
using HealthRpcs = grpc::health::v1::Health::WithRawMethod_Check<
    grpc::health::v1::Health::WithRawMethod_Watch<grpc::health::v1::Health::Service>>;

// Answers Check and Watch on this queue.
void wait_health_calls(ServerState& state, HealthRpcs& service, HealthWatch& watch, CallQueue queue);

}  // namespace tensord::server
