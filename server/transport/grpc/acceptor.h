#pragma once

#include <grpcpp/grpcpp.h>
#include <sys/un.h>

#include <memory>
#include <string>
#include <vector>

#include "core/base/thread.h"
#include "server/connections/connection_guard.h"

namespace tensord::server {

// Throws Error{kInvalidArgument} if the path is too long.
sockaddr_un unix_address(const std::string& path);
// Listens on a Unix socket at this path. The file has these permissions from the start, and replaces an existing one.
// Throws Error{kUnavailable}.
int listen_unix(const std::string& path, mode_t mode);

// Accepts connections and passes those that the guard allows to gRPC.
class Acceptor {
 public:
  // Takes at least one listening socket; all must be TCP, or all Unix.
  Acceptor(std::vector<int> listeners, std::shared_ptr<ConnectionGuard> guard);
  ~Acceptor();  // calls stop()

  int port() const { return port_; }  // 0 for Unix sockets
  // Call it before the server is built.
  void configure(grpc::ServerBuilder& builder, std::shared_ptr<grpc::ServerCredentials> credentials);
  // Starts accepting. Call it after the server has started.
  void start();
  // Closes the port; gRPC keeps the open connections. Call it before the server shuts down, because a server in
  // shutdown would leave new connections without an answer.
  void stop();

 private:
  void serve();
  void accept_one(int listener);

  const std::shared_ptr<ConnectionGuard> guard_;
  std::vector<int> listeners_;  // one for each address of the host name
  int wake_ = -1;
  int port_ = 0;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  Thread thread_;
};

}  // namespace tensord::server
