#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/base/file_descriptor.h"
#include "core/base/thread.h"
#include "core/distributed/store/store.h"
#include "core/distributed/store/table.h"

namespace tensord::distributed {

struct TcpServerOptions {
  std::string host = {};   // numeric address to listen on; empty: all addresses, IPv6 and IPv4
  uint16_t port = 29500;   // 0: the system picks one
  int listen_fd = -1;      // a listening socket that the server takes over; host and port are then ignored
  std::string token = {};  // shared secret of the clients
};

// The server that holds the keys of a TcpStore: one thread serves all clients. A waiting client gets its reply when its
// keys exist or its timeout expires.
class TcpStoreServer {
 public:
  // Throws Error{kUnavailable} "store: failed to listen on …".
  explicit TcpStoreServer(TcpServerOptions options);
  ~TcpStoreServer();  // closes the connections of its clients
  TcpStoreServer(const TcpStoreServer&) = delete;
  TcpStoreServer& operator=(const TcpStoreServer&) = delete;

  uint16_t port() const { return port_; }
  // Bytes of the replies that clients have not read yet. From any thread.
  size_t unread_bytes() const { return unread_bytes_; }

 private:
  struct Client;
  void serve();
  void count_unread_bytes();
  void accept_all();
  void drop_oldest_stranger();
  bool read_from(Client& client);  // false: disconnected, or violated the protocol
  bool answer_requests(Client& client);
  void handle(Client& client, std::string_view message);
  void check_entry(const std::string& key, size_t value_bytes) const;
  bool admit(Client& client, std::string_view message);
  void answer_waiting();
  bool try_waiting(Client& client);
  int poll_timeout_ms() const;

  const std::string token_;
  std::unique_ptr<FileDescriptor> listener_, wake_read_, wake_write_;
  uint16_t port_ = 0;
  std::vector<std::unique_ptr<Client>> clients_;  // used by the thread only, as is table_
  StoreTable table_;
  std::atomic<size_t> unread_bytes_ = 0;
  std::atomic<bool> is_stopped_ = false;
  Thread thread_;  // last: it uses the other members
};

}  // namespace tensord::distributed
