#include "server/transport/grpc/inherited_sockets.h"

#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/base/error.h"

namespace tensord::server {
namespace {

constexpr int kFirstFile = 3;
constexpr int kMaxFiles = 64;

// Returns 0 if the variable is not set.
int number_of(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return 0;
  int number = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), number);
  check(error == std::errc() && *end == '\0' && number >= 0, "$", variable, " is not a number: ", text);
  return number;
}

// Element `index` of a colon-separated list; empty beyond its end.
std::string_view name_at(std::string_view names, int index) {
  for (; index > 0; --index) {
    const size_t colon = names.find(':');
    if (colon == std::string_view::npos) return {};
    names.remove_prefix(colon + 1);
  }
  return names.substr(0, names.find(':'));
}

int option_of(int file, int option) {
  int value = 0;
  socklen_t size = sizeof(value);
  return getsockopt(file, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

std::string host_of(int file) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  char host[NI_MAXHOST] = "";
  getsockname(file, reinterpret_cast<sockaddr*>(&address), &size);
  getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host, sizeof(host), nullptr, 0, NI_NUMERICHOST);
  return host;
}

void take(int file, InheritedSockets& sockets) {
  check(option_of(file, SO_ACCEPTCONN) == 1 && option_of(file, SO_TYPE) == SOCK_STREAM, "$LISTEN_FDS: file ", file,
        " is not a stream socket that listens");
  fcntl(file, F_SETFD, FD_CLOEXEC);
  fcntl(file, F_SETFL, fcntl(file, F_GETFL) | O_NONBLOCK);
  if (option_of(file, SO_DOMAIN) != AF_UNIX) {
    if (sockets.tcp.empty()) sockets.tcp_host = host_of(file);
    sockets.tcp.push_back(file);
    return;
  }
  sockaddr_un address{};
  socklen_t size = sizeof(address);
  getsockname(file, reinterpret_cast<sockaddr*>(&address), &size);
  // A path of the maximum length has no terminating zero.
  const size_t length = strnlen(address.sun_path, sizeof(address.sun_path));
  if (sockets.unix_domain.empty()) sockets.unix_path.assign(address.sun_path, length);
  sockets.unix_domain.push_back(file);
}

}  // namespace

InheritedSockets take_inherited_sockets() {
  InheritedSockets sockets;
  if (number_of("LISTEN_PID") != getpid()) return sockets;
  const int count = number_of("LISTEN_FDS");
  check(count <= kMaxFiles, "$LISTEN_FDS: at most ", kMaxFiles, " sockets, got ", count);
  const char* names = std::getenv("LISTEN_FDNAMES");
  for (int i = 0; i < count; ++i) {
    const std::string_view name = name_at(names == nullptr ? "" : names, i);
    if (name == "http" || name == "metrics") {
      fail(ErrorCode::kUnimplemented, "$LISTEN_FDNAMES: ", name, ": only gRPC's sockets can be handed over");
    }
    take(kFirstFile + i, sockets);
  }
  return sockets;
}

}  // namespace tensord::server
