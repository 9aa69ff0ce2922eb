#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "server/config/network_options.h"
#include "server/transport/connection_limit.h"

namespace tensord::server {

// Where the gRPC server listens and how it treats connections, from the options to the builder. For one thread.
class Listening {
 public:
  // Throws Error{kInvalidArgument} for files of TLS that cannot be used and {kUnavailable} for a socket that is in use.
  Listening(const NetworkOptions& options, const std::string& address, int port);
  ~Listening();  // removes the Unix socket

  void configure(grpc::ServerBuilder& builder);
  // Builds and starts the server of a builder that configure() saw. Throws Error{kUnavailable} when an address cannot
  // be bound; the builder's completion queues are the caller's to shut down then.
  std::unique_ptr<grpc::Server> start(grpc::ServerBuilder& builder);
  int port() const { return limit_ ? limit_->port() : port_; }  // 0: no TCP port

 private:
  void add_ports(grpc::ServerBuilder& builder);
  std::string tcp_address() const;

  const NetworkOptions options_;
  const std::string address_;
  int port_;
  int unix_port_ = 0;                       // what gRPC says when it listens on the socket
  std::unique_ptr<ConnectionLimit> limit_;  // null: none
};

}  // namespace tensord::server
