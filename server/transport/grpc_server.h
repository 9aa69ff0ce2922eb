#pragma once

#include <memory>
#include <string>

#include "server/config/network_options.h"
#include "server/transport/grpc/server_state.h"

namespace tensord::server {

// The gRPC side of the daemon: a completion queue with its threads, and the services.
class GrpcServer {
 public:
  struct Options {
    std::string address = "127.0.0.1";
    int port = 0;     // 0: a free one
    int threads = 1;  // at most; as QueueThreads
    NetworkOptions network = {};
  };

  // Listens and answers from now on. Throws Error{kUnavailable} when the address cannot be
  // bound, kInvalidArgument for files of TLS that cannot be used. `state` must outlive this.
  GrpcServer(const Options& options, ServerState& state);
  ~GrpcServer();

  int port() const;             // 0: no TCP port
  std::string address() const;  // for clients
  // Takes no new calls, waits for the open ones, cancels those that are not done in time, and
  // ends the threads.
  void shut_down(int64_t timeout_ms);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tensord::server
