#pragma once

namespace tensord::server {

// Routes messages of gRPC (failed handshakes, sockets) and of protobuf to the daemon's log, so that all lines have its
// format. Call once, before gRPC starts threads.
void log_grpc_messages();

}  // namespace tensord::server
