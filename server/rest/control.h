#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "server/http/message.h"
#include "server/rest/call_charge.h"
#include "server/rest/target.h"
#include "server/transport/grpc/server_state.h"

namespace tensord::server {

// Answers every call except inference. `body` is the JSON body, and `charge` counts the memory that it expands to. May
// block as long as a model load takes. Does not throw.
HttpAnswer answer_control(ServerState& state, const RestTarget& target, bool is_post, std::string_view body,
                          const CallCharge& charge);

// {"metadata": …, "config": …} of a version that is served, as the calls of these names answer. Throws Error as
// Repository::find.
nlohmann::ordered_json describe_served(const ServerState& state, const std::string& name, const std::string& version);

}  // namespace tensord::server
