#include "server/web/http_server.h"

#include <httplib.h>

#include <thread>

#include "core/base/error.h"

namespace tensord::server {
namespace {

constexpr size_t kThreads = 4;
constexpr time_t kTimeoutSeconds = 5;
constexpr size_t kMaxBodyBytes = 1 << 16;

void answer(const HttpServer::Handler& handler, const httplib::Request& request, httplib::Response& response) {
  HttpAnswer answer;
  try {
    answer = handler({.path = request.path,
                      .accept = request.get_header_value("Accept"),
                      .authorization = request.get_header_value("Authorization")});
  } catch (const std::exception& error) {
    answer = {.status = 500, .body = concat(error.what(), "\n")};
  }
  response.status = answer.status;
  response.set_content(std::move(answer.body), answer.type.c_str());
  if (!answer.authenticate.empty()) response.set_header("WWW-Authenticate", answer.authenticate);
  response.set_header("Cache-Control", "no-store");
  response.set_header("X-Content-Type-Options", "nosniff");
  // The page brings all that it uses, and nobody shows it inside of another.
  response.set_header("Content-Security-Policy",
                      "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; "
                      "img-src data:; frame-ancestors 'none'");
}

}  // namespace

struct HttpServer::State {
  httplib::Server server;
  Handler handler;
  std::thread thread;
  int port = 0;
};

HttpServer::HttpServer(const std::string& purpose, const std::string& address, int port, Handler handler)
    : state_(std::make_unique<State>()) {
  state_->handler = std::move(handler);
  httplib::Server& server = state_->server;
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_payload_max_length(kMaxBodyBytes);
  server.set_read_timeout(kTimeoutSeconds, 0);
  server.set_write_timeout(kTimeoutSeconds, 0);
  server.set_keep_alive_max_count(1);
  // Two daemons on one port would each get some of the requests.
  server.set_socket_options([](auto socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  server.Get(".*", [state = state_.get()](const httplib::Request& request, httplib::Response& response) {
    answer(state->handler, request, response);
  });
  state_->port =
      port != 0 ? (server.bind_to_port(address.c_str(), port) ? port : -1) : server.bind_to_any_port(address.c_str());
  if (state_->port <= 0) fail(ErrorCode::kUnavailable, "cannot listen for ", purpose, " on ", address, ":", port);
  state_->thread = std::thread([&server] { server.listen_after_bind(); });
  // A stop before the loop has begun would be lost.
  while (!server.is_running()) std::this_thread::yield();
}

HttpServer::~HttpServer() {
  state_->server.stop();
  if (state_->thread.joinable()) state_->thread.join();
}

int HttpServer::port() const { return state_->port; }

}  // namespace tensord::server
