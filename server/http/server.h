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

// An HTTP/1.1 port: threads with an epoll loop each, none for a connection or a request that waits. Bodies are received
// where they are used, answers sent from where they lie. Thread-safe.
class HttpServer {
 public:
  struct Options {
    std::string purpose = "HTTP";  // in errors and logs
    std::string address = "127.0.0.1";
    int port = 0;  // 0: a free one
    int threads = 1;
    ConnectionTable::Limits limits = {};
    HttpDeadlines deadlines = {};
    HttpMemoryQuota quota = {};  // empty: none
    AllowedOrigins origins = {};
  };

  // Listens and answers from now on. Throws Error{kUnavailable} when the address cannot be bound. `handler` must
  // outlive this.
  HttpServer(const Options& options, HttpHandler& handler);
  ~HttpServer();  // stop(0)

  int port() const { return port_; }
  size_t connections() const;
  // Takes no new connections and requests, waits for those under way, and cuts those that are not done in time.
  void stop(int64_t timeout_ms);

 private:
  std::shared_ptr<LoopContext> context_;
  std::vector<std::shared_ptr<EventLoop>> loops_;
  int port_ = 0;
  bool is_stopped_ = false;
};

}  // namespace tensord::server
