#pragma once

#include "server/transport/calls/inference_service.h"
#include "server/transport/grpc/call.h"
#include "server/transport/grpc/server_state.h"

namespace tensord::server {

// Answers TraceSetting and LogSettings on this queue.
void wait_settings_calls(ServerState& state, InferenceService& service, CallQueue queue);

// Their implementation, for other protocols too. Throw Error.
void answer_trace_setting(ServerState& state, const inference::TraceSettingRequest& request,
                          inference::TraceSettingResponse& response);
void answer_log_settings(const inference::LogSettingsRequest& request, inference::LogSettingsResponse& response);

}  // namespace tensord::server
