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
  std::string host = {};  // the address to listen on, in digits; empty: all, IPv6 and IPv4
  uint16_t port = 29500;  // 0: the system picks one
  int listen_fd = -1;     // a socket that listens already, which the server takes over; host and port do not count then
  std::string token = {};  // what clients have to know
};

// The place where a TcpStore's keys are: one thread that answers all clients. A client that waits is answered when its
// keys are there or its time is over.
class TcpStoreServer {
 public:
  // Throws Error{kUnavailable} "store: failed to listen on …".
  explicit TcpStoreServer(TcpServerOptions options);
  ~TcpStoreServer();  // ends its clients' connections
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
  bool read_from(Client& client);  // false: it is gone, or has broken the rules
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
  std::vector<std::unique_ptr<Client>> clients_;  // by the thread alone, as table_
  StoreTable table_;
  std::atomic<size_t> unread_bytes_ = 0;
  std::atomic<bool> is_stopped_ = false;
  Thread thread_;  // last: it uses the rest
};

}  // namespace tensord::distributed
