#include "server/transport/grpc/acceptor.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>

#include "core/base/error.h"
#include "core/base/log.h"
#include "server/http/listener.h"

namespace tensord::server {
namespace {

// Pause after accept() failed for lack of descriptors or memory.
constexpr auto kPause = std::chrono::milliseconds(20);

}  // namespace

sockaddr_un unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  check(path.size() < sizeof(address.sun_path), "--grpc-unix-socket: ", path, " has more than ",
        sizeof(address.sun_path) - 1, " characters");
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

int listen_unix(const std::string& path, mode_t mode) {
  const sockaddr_un address = unix_address(path);
  unlink(path.c_str());
  const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  // umask sets the permissions at bind(), so that there is no window in which others can connect.
  const mode_t previous = umask(~mode & 0777);
  int result = bind(made, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  umask(previous);
  if (result == 0) result = listen(made, SOMAXCONN);
  if (result == 0) return made;
  const int reason = errno;
  close(made);
  fail(ErrorCode::kUnavailable, "cannot listen for gRPC on unix:", path, ": ", std::generic_category().message(reason));
}

Acceptor::Acceptor(std::vector<int> listeners, std::shared_ptr<ConnectionGuard> guard)
    : guard_(std::move(guard)), listeners_(std::move(listeners)) {
  port_ = port_of(listeners_.front());
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

Acceptor::~Acceptor() {
  stop();
  close(wake_);
}

void Acceptor::stop() {
  if (thread_.joinable()) {
    eventfd_write(wake_, 1);
    thread_.join();
  }
  for (const int listener : listeners_) close(listener);
  listeners_.clear();
}

void Acceptor::configure(grpc::ServerBuilder& builder, std::shared_ptr<grpc::ServerCredentials> credentials) {
  using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  acceptor_ = builder.experimental().AddExternalConnectionAcceptor(Type::FROM_FD, std::move(credentials));
}

void Acceptor::start() {
  thread_ = Thread("accept", [this] { serve(); });
}

void Acceptor::serve() {
  std::vector<pollfd> files{{wake_, POLLIN, 0}};
  for (const int listener : listeners_) files.push_back({listener, POLLIN, 0});
  while (files.front().revents == 0) {
    poll(files.data(), files.size(), -1);  // interrupted by a signal: accept() then finds nothing
    for (size_t i = 1; i < files.size(); ++i) {
      if (files[i].revents != 0) run_logged("accept", [&] { accept_one(files[i].fd); });
    }
  }
}

void Acceptor::accept_one(int listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  const int connection = accept4(listener, reinterpret_cast<sockaddr*>(&address), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (connection == -1) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) std::this_thread::sleep_for(kPause);
    return;
  }
  const PeerAddress peer(address);
  if (!guard_->add(connection, peer)) {
    close(connection);
    log(LogLevel::kDebug, "connection refused", {{"peer", peer.text()}});
    return;
  }
  const int yes = 1;
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  // gRPC creates the TLS session immediately, on this thread.
  const ConnectionGuard::HandOver hand_over(connection);
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
  parameters.listener_fd = listener;
  parameters.fd = connection;
  acceptor_->HandleNewConnection(&parameters);
}

}  // namespace tensord::server
