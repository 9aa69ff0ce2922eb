#pragma once

#include <memory>
#include <string>

#include "server/config/network_options.h"
#include "server/transport/grpc/server_state.h"

namespace tensord::server {

// The gRPC server of the daemon: a completion queue with its threads, and the services.
class GrpcServer {
 public:
  struct Options {
    std::string address = "127.0.0.1";
    int port = 0;     // 0: selects a free port
    int threads = 1;  // the most threads, see QueueThreads
    NetworkOptions network = {};
  };

  // Starts listening and answering. Throws Error{kUnavailable} if the address cannot be bound, kInvalidArgument if the
  // TLS files are unusable. `state` must outlive this.
  GrpcServer(const Options& options, ServerState& state);
  ~GrpcServer();

  int port() const;             // 0: no TCP port
  std::string address() const;  // for clients
  // Accepts no new calls, waits for the open ones, cancels those that do not finish in time, and ends the threads.
  void shut_down(int64_t timeout_ms);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tensord::server
