#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/distributed/store/tcp_server.h"

namespace tensord::distributed {

struct TcpStoreOptions {
  std::string host = "127.0.0.1";                 // of the server; a name or digits
  uint16_t port = 29500;                          // 0, for the server's own process: the system picks one, see port()
  bool is_server = false;                         // serves as well, for as long as this handle and its clones live
  int world_size = 0;                             // waits at start until so many handles have come; 0: does not
  Milliseconds timeout = Store::kDefaultTimeout;  // of a call that has none of its own, and of start
  std::string token = {};
  std::string listen_host = {};  // of the server, see TcpServerOptions
  int listen_fd = -1;
};

// A store that one process serves to all over TCP. A call that meets no server any more throws Error{kUnavailable}.
// Names are asked for again, and connections tried, until the timeout. c10d's TCPStore, but a wrong add() ends no
// connection.
class TcpStore final : public Store {
 public:
  explicit TcpStore(const TcpStoreOptions& options);
  ~TcpStore() override;

  uint16_t port() const;

  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Milliseconds timeout) override;
  using Store::wait;
  void wait(std::span<const std::string> keys, Milliseconds timeout) override;
  using Store::check;
  bool check(std::span<const std::string> keys) override;
  int64_t add(const std::string& key, int64_t amount) override;
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired) override;
  void append(const std::string& key, const std::string& value) override;
  bool remove(const std::string& key) override;
  int64_t count() override;
  std::vector<std::string> list_keys() override;
  void queue_push(const std::string& key, const std::string& value) override;
  std::string queue_pop(const std::string& key, Milliseconds timeout) override;
  int64_t queue_size(const std::string& key) override;
  std::shared_ptr<Store> clone() override;
  void interrupt() override;

 private:
  class Connection;
  class Lease;
  struct Place;  // where the server is, and the server itself where it is ours
  TcpStore(std::shared_ptr<Place> place, Milliseconds timeout);
  void join(int world_size);
  void connect(Lease& lease, std::chrono::steady_clock::time_point deadline, bool retries);
  // Sends the message over a connection that nobody uses, and gives the reply's fields.
  std::string call(const std::string& message, Milliseconds timeout);
  std::string call(const std::string& message) { return call(message, timeout()); }

  const std::shared_ptr<Place> place_;
  Mutex mutex_;
  std::list<std::unique_ptr<Connection>> idle_ TENSORD_GUARDED_BY(mutex_);
  std::list<Connection*> busy_ TENSORD_GUARDED_BY(mutex_);
  std::atomic<bool> is_interrupted_ = false;
};

}  // namespace tensord::distributed
