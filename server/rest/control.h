#pragma once

#include "server/http/message.h"
#include "server/rest/call_charge.h"
#include "server/rest/target.h"
#include "server/transport/grpc/server_state.h"

namespace tensord::server {

// Answers a call other than those of inference; `body` is its JSON, and `charge` counts what becomes of it. May take as
// long as a load. Does not throw.
HttpAnswer answer_control(ServerState& state, const RestTarget& target, bool is_post, std::string_view body,
                          const CallCharge& charge);

}  // namespace tensord::server
