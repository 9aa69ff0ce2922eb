#include "server/commands/client/port_probe.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <string_view>

namespace tensord::server {
namespace {

using namespace std::string_view_literals;

// The HTTP/2 connection preface and an empty SETTINGS frame.
constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"sv;
constexpr char kTlsAlert = 0x15, kSettingsFrame = 4;

int connect_to(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return -1;
  int made = -1;
  for (const addrinfo* at = found; at != nullptr && made < 0; at = at->ai_next) {
    made = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    const timeval limit{.tv_sec = 1, .tv_usec = 0};
    setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(made, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (connect(made, at->ai_addr, at->ai_addrlen) == 0) break;
    close(made);
    made = -1;
  }
  freeaddrinfo(found);
  return made;
}

}  // namespace

PortKind probe_port(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || address.starts_with("unix:")) return PortKind::kNothing;
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const int made = connect_to(host, address.substr(colon + 1));
  if (made < 0) return PortKind::kNothing;
  char answer[9] = {};
  ssize_t size = -1;
  if (send(made, kPreface.data(), kPreface.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(kPreface.size())) {
    size = recv(made, answer, sizeof(answer), MSG_WAITALL);
  }
  close(made);
  // A TLS server rejects the preface: it sends an alert or closes the connection.
  if (size <= 0 || answer[0] == kTlsAlert) return size < 0 ? PortKind::kNothing : PortKind::kTls;
  if (std::string_view(answer, sizeof(answer)).starts_with("HTTP/1")) return PortKind::kHttp;
  return size == sizeof(answer) && answer[3] == kSettingsFrame ? PortKind::kPlainGrpc : PortKind::kNothing;
}

}  // namespace tensord::server
