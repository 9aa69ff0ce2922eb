#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

namespace tensord::server {

// What the daemon answered, as our own errors: throws Error with its code and text unless the status is OK.
void check_status(const grpc::Status& status);

// A channel to a running daemon. Throws Error{kUnavailable} when none answers within some seconds.
std::shared_ptr<grpc::Channel> connect(const std::string& address);

}  // namespace tensord::server
