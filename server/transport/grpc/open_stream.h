#pragma once

#include "server/transport/grpc/call.h"

namespace tensord::server {

// Takes a stream that has arrived: OK, and it is among the open ones, or what it is to be ended with.
inline grpc::Status open_stream(OpenStreams& streams, const CallQueue& queue, CallGroup group,
                                grpc::ServerContext* context) {
  grpc::Status status = queue.access->check(*context, group);
  if (status.ok() && !streams.add(context)) {
    status = grpc::Status(grpc::StatusCode::UNAVAILABLE,
                          "GRPC server is shutting down and has stopped accepting new requests.");
  }
  return status;
}

}  // namespace tensord::server
