#include "server/transport/connection_limit.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "core/base/error.h"
#include "core/base/log.h"
#include "server/http/listener.h"

namespace tensord::server {
namespace {

// After an accept that failed for want of files or memory.
constexpr auto kPause = std::chrono::milliseconds(20);

void watch(int poll, int file, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = file;
  epoll_ctl(poll, EPOLL_CTL_ADD, file, &event);
}

}  // namespace

ConnectionLimit::ConnectionLimit(const std::string& address, int port, int max_connections)
    : max_connections_(max_connections) {
  listeners_ = bind_listeners(address, port);
  if (listeners_.empty()) fail(ErrorCode::kUnavailable, "cannot listen for gRPC on ", address, ":", port);
  watch_listeners();
}

ConnectionLimit::ConnectionLimit(std::vector<int> listeners, int max_connections)
    : max_connections_(max_connections), listeners_(std::move(listeners)) {
  watch_listeners();
}

void ConnectionLimit::watch_listeners() {
  port_ = port_of(listeners_.front());
  poll_ = epoll_create1(EPOLL_CLOEXEC);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  for (const int listener : listeners_) watch(poll_, listener, EPOLLIN);
  watch(poll_, wake_, EPOLLIN);
}

ConnectionLimit::~ConnectionLimit() {
  stop();
  for (const int file : {poll_, wake_}) close(file);
}

void ConnectionLimit::stop() {
  const uint64_t one = 1;
  if (thread_.joinable() && write(wake_, &one, sizeof(one)) == sizeof(one)) thread_.join();
  for (const int file : watched_) close(file);
  for (const int listener : listeners_) close(listener);
  watched_.clear();
  listeners_.clear();
}

void ConnectionLimit::configure(grpc::ServerBuilder& builder, std::shared_ptr<grpc::ServerCredentials> credentials) {
  using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  acceptor_ = builder.experimental().AddExternalConnectionAcceptor(Type::FROM_FD, std::move(credentials));
}

void ConnectionLimit::start() {
  thread_ = std::thread([this] { serve(); });
}

void ConnectionLimit::serve() {
  std::array<epoll_event, 64> events{};
  for (bool is_open = true; is_open;) {
    const int count = epoll_wait(poll_, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      const int file = events[static_cast<size_t>(i)].data.fd;
      if (file == wake_) {
        is_open = false;
      } else if (std::find(listeners_.begin(), listeners_.end(), file) != listeners_.end()) {
        accept_one(file);
      } else {
        forget(file);
      }
    }
  }
}

void ConnectionLimit::accept_one(int listener) {
  const int connection = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (connection < 0) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) std::this_thread::sleep_for(kPause);
    return;
  }
  const int watched = connections() < max_connections_ ? fcntl(connection, F_DUPFD_CLOEXEC, 0) : -1;
  if (watched < 0) {
    close(connection);
    log(LogLevel::kDebug, "connection refused", {{"open", connections()}});
    return;
  }
  const int yes = 1;
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  connections_.fetch_add(1, std::memory_order_relaxed);
  watched_.insert(watched);
  // Only the end of the connection is waited for; gRPC reads.
  watch(poll_, watched, EPOLLRDHUP);
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
  parameters.listener_fd = listener;
  parameters.fd = connection;
  acceptor_->HandleNewConnection(&parameters);
}

void ConnectionLimit::forget(int watched) {
  // gRPC still has the connection, so closing the duplicate alone would leave it in the poll.
  epoll_ctl(poll_, EPOLL_CTL_DEL, watched, nullptr);
  close(watched);
  watched_.erase(watched);
  connections_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace tensord::server
