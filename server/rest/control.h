#pragma once

#include "server/http/message.h"
#include "server/rest/call_charge.h"
#include "server/rest/target.h"
#include "server/transport/grpc/server_state.h"

namespace tensord::server {

// Answers every call except inference. `body` is the JSON body, and `charge` counts the memory that it expands to. May
// block as long as a model load takes. Does not throw.
HttpAnswer answer_control(ServerState& state, const RestTarget& target, bool is_post, std::string_view body,
                          const CallCharge& charge);

}  // namespace tensord::server
