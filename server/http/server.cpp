#include "server/http/server.h"

#include <fcntl.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "server/http/event_loop.h"
#include "server/http/listener.h"
#include "server/http/socket.h"

namespace tensord::server {

HttpServer::HttpServer(const Options& options, HttpHandler& handler)
    : context_(new LoopContext{.handler = handler,
                               .quota = options.quota,
                               .deadlines = options.deadlines,
                               .origins = options.origins,
                               .table = ConnectionTable(options.limits)}) {
  const auto [listeners, reason] = bind_listeners(options.address, options.port);
  if (listeners.empty()) {
    fail(ErrorCode::kUnavailable, "cannot listen for ", options.purpose, " on ", options.address, ":", options.port,
         ": ", reason);
  }
  port_ = port_of(listeners.front());
  for (int i = 0; i < options.threads; ++i) {
    const auto loop = std::make_shared<EventLoop>(context_, i);
    for (const int listener : listeners) loop->listen(fcntl(listener, F_DUPFD_CLOEXEC, 0), make_plain_socket);
    context_->loops.push_back(loop.get());
    loops_.push_back(loop);
  }
  for (const int listener : listeners) close(listener);
  for (const auto& loop : loops_) loop->start();
}

HttpServer::~HttpServer() { stop(0); }

size_t HttpServer::connections() const { return context_->table.size(); }

void HttpServer::stop(int64_t timeout_ms) {
  if (is_stopped_) return;
  is_stopped_ = true;
  const int64_t deadline_ns = Clock::system().now_ns() + timeout_ms * 1'000'000;
  for (const auto& loop : loops_) loop->stop(deadline_ns);
  for (const auto& loop : loops_) loop->join();
}

}  // namespace tensord::server
