#pragma once

#include "server/transport/calls/inference_service.h"
#include "server/transport/grpc/call.h"
#include "server/transport/grpc/server_state.h"

namespace tensord::server {

// Answers ModelStatistics on this queue.
void wait_statistics_calls(ServerState& state, InferenceService& service, CallQueue queue);

// Its answer, for other protocols too. Throws Error.
void answer_statistics(const ServerState& state, const inference::ModelStatisticsRequest& request,
                       inference::ModelStatisticsResponse& response);

}  // namespace tensord::server
