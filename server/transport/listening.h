#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "server/config/network_options.h"
#include "server/transport/connection_limit.h"
#include "server/transport/inherited_sockets.h"

namespace tensord::server {

// Where the gRPC server listens and how it treats connections, from the options to the builder. Sockets that the
// process was started with take the place of the options' addresses. For one thread.
class Listening {
 public:
  // Throws Error{kInvalidArgument} for files of TLS that cannot be used and {kUnavailable} for a socket that is in use.
  Listening(const NetworkOptions& options, const std::string& address, int port);
  ~Listening();  // removes the Unix socket

  void configure(grpc::ServerBuilder& builder);
  // Builds and starts the server of a builder that configure() saw. Throws Error{kUnavailable} when an address cannot
  // be bound; the builder's completion queues are the caller's to shut down then.
  std::unique_ptr<grpc::Server> start(grpc::ServerBuilder& builder);
  // No new connections from now on, but on a Unix socket that gRPC itself listens on.
  void stop();
  int port() const { return limit_ ? limit_->port() : port_; }  // 0: no TCP port
  std::string address() const;                                  // for clients: "127.0.0.1:8001", "unix:/run/grpc"

 private:
  void take_inherited();
  void add_ports(grpc::ServerBuilder& builder);
  bool has_tcp() const { return inherited_.empty() ? !options_.is_unix_socket_only : !inherited_.tcp.empty(); }
  bool has_unix() const { return inherited_.empty() ? !options_.unix_socket.empty() : !inherited_.unix_domain.empty(); }

  const NetworkOptions options_;
  const std::string address_;
  int port_;
  int unix_port_ = 0;  // what gRPC says when it listens on the socket
  const InheritedSockets inherited_;
  std::unique_ptr<ConnectionLimit> limit_;       // of the TCP port; null: none
  std::unique_ptr<ConnectionLimit> unix_limit_;  // of inherited Unix sockets
};

}  // namespace tensord::server
