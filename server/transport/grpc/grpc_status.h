#pragma once

#include <absl/status/status.h>
#include <grpcpp/support/status.h>

#include <string>

namespace tensord::server {

// gRPC sends messages as HTTP/2 header text; very long ones would break the call.
inline constexpr size_t kMaxStatusMessageBytes = 4096;

// The codes of absl::Status have gRPC's numbers.
inline grpc::Status to_grpc_status(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  std::string message(status.message().substr(0, kMaxStatusMessageBytes));
  return {static_cast<grpc::StatusCode>(status.code()), message};
}

}  // namespace tensord::server
