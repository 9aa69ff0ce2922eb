#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "server/config/network_options.h"
#include "server/connections/connection_guard.h"
#include "server/metrics/metrics.h"
#include "server/transport/grpc/acceptor.h"
#include "server/transport/grpc/certificates.h"
#include "server/transport/grpc/inherited_sockets.h"

namespace tensord::server {

// Configures where the gRPC server listens and how it treats connections. Inherited sockets replace the addresses of
// the options. Not thread-safe.
class Listening {
 public:
  // Throws Error{kInvalidArgument} for unusable TLS files and {kUnavailable} for a socket that is in use. `metrics`
  // must outlive this.
  Listening(const NetworkOptions& options, const std::string& address, int port, Metrics& metrics);
  ~Listening();  // calls stop()

  void configure(grpc::ServerBuilder& builder);
  // Builds and starts the server of a builder that was passed to configure(). Throws Error{kUnavailable} if an address
  // cannot be bound; the caller must then shut down the builder's completion queues.
  std::unique_ptr<grpc::Server> start(grpc::ServerBuilder& builder);
  // Stops accepting connections and removes the Unix socket.
  void stop();
  int port() const { return tcp_ ? tcp_->port() : 0; }  // 0: no TCP port
  std::string address() const;                          // for clients: "127.0.0.1:8001", "unix:/run/grpc"
  std::shared_ptr<const ConnectionGuard> guard() const { return guard_; }

 private:
  const NetworkOptions options_;
  const std::string address_;
  const InheritedSockets inherited_;
  const std::shared_ptr<ConnectionGuard> guard_;
  std::shared_ptr<Certificates> certificates_;            // null: no TLS
  std::shared_ptr<grpc::ServerCredentials> credentials_;  // used by handshakes as long as there is a server
  std::unique_ptr<Acceptor> tcp_, unix_;                  // null: not listening there
  bool owns_unix_socket_ = false;
};

}  // namespace tensord::server
