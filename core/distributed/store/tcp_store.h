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
  std::string host = "127.0.0.1";  // of the server; a name or a numeric address
  uint16_t port = 29500;           // 0, in the server's own process only: the system picks one, see port()
  bool is_server = false;          // also serves the store while this handle and its clones live
  int world_size = 0;              // the constructor waits for this many handles; 0: does not wait
  Milliseconds timeout = Store::kDefaultTimeout;  // of calls without a timeout of their own, and of the constructor
  std::string token = {};
  std::string listen_host = {};  // of the server, see TcpServerOptions
  int listen_fd = -1;
};

// A store that one process serves to all others over TCP. A call throws Error{kUnavailable} if the server is gone. At
// startup, names are resolved and connections attempted again until the timeout. Like c10d's TCPStore, except that an
// invalid add() does not close the connection.
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
  struct Place;  // where the server is, and the server itself if this process runs it
  TcpStore(std::shared_ptr<Place> place, Milliseconds timeout);
  void join(int world_size);
  void connect(Lease& lease, std::chrono::steady_clock::time_point deadline, bool retries);
  // Sends the message over a free connection and returns the fields of the reply.
  std::string call(const std::string& message, Milliseconds timeout);
  std::string call(const std::string& message) { return call(message, timeout()); }

  const std::shared_ptr<Place> place_;
  Mutex mutex_;
  std::list<std::unique_ptr<Connection>> idle_ TENSORD_GUARDED_BY(mutex_);
  std::list<Connection*> busy_ TENSORD_GUARDED_BY(mutex_);
  std::atomic<bool> is_interrupted_ = false;
};

}  // namespace tensord::distributed
