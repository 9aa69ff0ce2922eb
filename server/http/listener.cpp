#include "server/http/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace tensord::server {
namespace {

// Returns -1 and sets errno on failure.
int bind_one(const addrinfo& address) {
  const int made = socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol);
  if (made < 0) return -1;
  const int yes = 1;
  setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (bind(made, address.ai_addr, address.ai_addrlen) == 0 && listen(made, SOMAXCONN) == 0) return made;
  const int reason = errno;
  close(made);
  errno = reason;
  return -1;
}

std::string reason_of(int error, int port) {
  std::string text = std::generic_category().message(error);
  if (error == EADDRINUSE) text += ": another process listens there";
  if (error == EACCES && port > 0 && port < 1024) text += ": ports below 1024 are the superuser's";
  if (error == EADDRNOTAVAIL) text += ": it is not an address of this machine";
  return text;
}

void set_port(sockaddr* address, int port) {
  const in_port_t number = htons(static_cast<uint16_t>(port));
  if (address->sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = number;
  } else {
    reinterpret_cast<sockaddr_in*>(address)->sin_port = number;
  }
}

}  // namespace

int port_of(int listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  if (address.ss_family == AF_UNIX) return 0;
  const in_port_t port = address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                                       : reinterpret_cast<const sockaddr_in&>(address).sin_port;
  return ntohs(port);
}

Listeners bind_listeners(const std::string& address, int port) {
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string service = std::to_string(port);
  const int unknown = getaddrinfo(address.c_str(), service.c_str(), &hints, &found);
  if (unknown != 0) return {{}, gai_strerror(unknown)};
  std::vector<int> listeners;
  std::string reason;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    if (!listeners.empty()) set_port(at->ai_addr, port_of(listeners.front()));
    const int made = bind_one(*at);
    if (made >= 0) listeners.push_back(made);
    if (made < 0 && reason.empty()) reason = reason_of(errno, port);
  }
  freeaddrinfo(found);
  return {std::move(listeners), std::move(reason)};
}

}  // namespace tensord::server
