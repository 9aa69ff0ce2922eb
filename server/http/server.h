#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/http/connection.h"
#include "server/http/connection_table.h"
#include "server/http/handler.h"
#include "server/http/message.h"
#include "server/http/origins.h"

namespace tensord::server {

struct LoopContext;

// An HTTP/1.1 server: threads with an epoll loop each, none per connection or request. Bodies are received into their
// final memory, and answers sent from theirs. Thread-safe.
class HttpServer {
 public:
  struct Options {
    std::string purpose = "HTTP";  // in errors and logs
    std::string address = "127.0.0.1";
    int port = 0;  // 0: a free one
    int threads = 1;
    ConnectionTable::Limits limits = {};
    HttpDeadlines deadlines = {};
    HttpMemoryQuota quota = {};  // empty: no quota
    AllowedOrigins origins = {};
  };

  // Starts to listen. Throws Error{kUnavailable} if the address cannot be bound. `handler` must outlive this.
  HttpServer(const Options& options, HttpHandler& handler);
  ~HttpServer();  // stop(0)

  int port() const { return port_; }
  size_t connections() const;
  // Accepts no new connections and requests, waits for the current ones, and closes those that exceed the timeout.
  void stop(int64_t timeout_ms);

 private:
  std::shared_ptr<LoopContext> context_;
  std::vector<std::shared_ptr<EventLoop>> loops_;
  int port_ = 0;
  bool is_stopped_ = false;
};

}  // namespace tensord::server
