#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

namespace tensord::server {

// A TCP port whose connections are counted: those above the limit are closed before gRPC sees them. gRPC has no such
// limit, so this accepts, hands over what may stay, and learns from a duplicate of the socket when it has ended.
class ConnectionLimit {
 public:
  // Binds. Throws Error{kUnavailable}. Port 0 takes a free one.
  ConnectionLimit(const std::string& address, int port, int max_connections);
  // Takes sockets that listen already, at least one; all TCP, or all Unix.
  ConnectionLimit(std::vector<int> listeners, int max_connections);
  ~ConnectionLimit();  // stops

  int port() const { return port_; }  // 0: of Unix sockets
  // Before the server is built.
  void configure(grpc::ServerBuilder& builder, std::shared_ptr<grpc::ServerCredentials> credentials);
  // Accepts from now on. To be called once the server has started.
  void start();
  // Closes the port; open connections are gRPC's. To be called before the server shuts down: it would leave later ones
  // without an answer.
  void stop();
  int connections() const { return connections_.load(std::memory_order_relaxed); }

 private:
  void watch_listeners();
  void serve();
  void accept_one(int listener);
  void forget(int watched);

  const int max_connections_;
  std::vector<int> listeners_;  // one for each address that the name has
  int poll_ = -1;               // epoll: the listeners, the wake-up, and a duplicate of every connection
  int wake_ = -1;
  int port_ = 0;
  std::atomic<int> connections_{0};
  std::unordered_set<int> watched_;  // the duplicates; of the thread
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::thread thread_;
};

}  // namespace tensord::server
