#include "server/metrics/exposition_server.h"

#include <httplib.h>

#include <thread>

#include "core/base/error.h"

namespace tensord::server {

struct ExpositionServer::State {
  httplib::Server server;
  std::thread thread;
  int port = 0;
};

ExpositionServer::ExpositionServer(const std::string& address, int port,
                                   std::function<Answer(const std::string& accept)> answer)
    : state_(std::make_unique<State>()) {
  httplib::Server& server = state_->server;
  constexpr size_t kThreads = 2;
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_payload_max_length(1 << 16);
  server.set_read_timeout(5, 0);
  server.set_write_timeout(5, 0);
  server.set_keep_alive_timeout(5);
  // Two daemons on one port would each get some of the scrapes.
  server.set_socket_options([](auto socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  server.Get("/metrics", [answer = std::move(answer)](const httplib::Request& request, httplib::Response& response) {
    const Answer metrics = answer(request.get_header_value("Accept"));
    response.set_content(metrics.body, metrics.content_type);
  });
  state_->port =
      port != 0 ? (server.bind_to_port(address.c_str(), port) ? port : -1) : server.bind_to_any_port(address.c_str());
  if (state_->port <= 0) fail(ErrorCode::kUnavailable, "cannot listen for metrics on ", address, ":", port);
  state_->thread = std::thread([&server] { server.listen_after_bind(); });
}

ExpositionServer::~ExpositionServer() {
  state_->server.stop();
  if (state_->thread.joinable()) state_->thread.join();
}

int ExpositionServer::port() const { return state_->port; }

}  // namespace tensord::server
