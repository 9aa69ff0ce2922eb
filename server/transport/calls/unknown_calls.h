#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <string>

#include "server/transport/grpc/call.h"

namespace tensord::server {

// What to say of "/package.Service/Method", which is none of this server's: whose protocol it is, where that is known,
// and which one is spoken here.
std::string describe_unknown_method(const std::string& method);

// Answers all calls of methods that no service has: UNIMPLEMENTED, with that. `service` must outlive the server.
void wait_unknown_calls(grpc::AsyncGenericService& service, const CallQueue& queue);

}  // namespace tensord::server
