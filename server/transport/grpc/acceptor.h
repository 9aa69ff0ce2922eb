#pragma once

#include <grpcpp/grpcpp.h>
#include <sys/un.h>

#include <memory>
#include <string>
#include <vector>

#include "core/base/thread.h"
#include "server/connections/connection_guard.h"

namespace tensord::server {

// Throws Error{kInvalidArgument} for a path that is too long.
sockaddr_un unix_address(const std::string& path);
// A socket at this path, whose file has these permissions from the start. Takes the place of one that is there. Throws
// Error{kUnavailable}.
int listen_unix(const std::string& path, mode_t mode);

// Accepts connections and gives them to gRPC, those that the guard lets in.
class Acceptor {
 public:
  // Takes sockets that listen already, at least one; all TCP, or all Unix.
  Acceptor(std::vector<int> listeners, std::shared_ptr<ConnectionGuard> guard);
  ~Acceptor();  // stops

  int port() const { return port_; }  // 0: of Unix sockets
  // Before the server is built.
  void configure(grpc::ServerBuilder& builder, std::shared_ptr<grpc::ServerCredentials> credentials);
  // Accepts from now on. To be called once the server has started.
  void start();
  // Closes the port; open connections are gRPC's. To be called before the server shuts down: it would leave later ones
  // without an answer.
  void stop();

 private:
  void serve();
  void accept_one(int listener);

  const std::shared_ptr<ConnectionGuard> guard_;
  std::vector<int> listeners_;  // one for each address that the name has
  int wake_ = -1;
  int port_ = 0;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  Thread thread_;
};

}  // namespace tensord::server
