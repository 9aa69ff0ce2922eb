#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <string>

#include "server/transport/grpc/call.h"

namespace tensord::server {

// The message for the unknown method "/package.Service/Method": the protocol it belongs to, if known, and the protocol
// of this server.
std::string describe_unknown_method(const std::string& method);

// Answers calls of methods that no service has with UNIMPLEMENTED and that message. `service` must outlive the server.
void wait_unknown_calls(grpc::AsyncGenericService& service, const CallQueue& queue);

}  // namespace tensord::server
