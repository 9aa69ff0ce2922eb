#pragma once

namespace tensord::server {

// Sends what gRPC itself logs (broken handshakes, sockets) through the daemon's log, so that every line has its format.
// Call once, before gRPC's first threads.
void log_grpc_messages();

}  // namespace tensord::server
