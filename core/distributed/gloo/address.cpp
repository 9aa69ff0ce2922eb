#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "core/base/error.h"
#include "core/base/file_descriptor.h"
#include "core/distributed/gloo/gloo_backend.h"

namespace tensord::distributed {
namespace {

std::string digits_of(const sockaddr* address, socklen_t size) {
  char text[NI_MAXHOST];
  const int error = getnameinfo(address, size, text, sizeof(text), nullptr, 0, NI_NUMERICHOST);
  if (error != 0) fail(ErrorCode::kUnavailable, "an address of this host: ", gai_strerror(error));
  return text;
}

std::string address_of_interface(const std::string& name) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) fail(ErrorCode::kUnavailable, "interfaces of this host: ", std::strerror(errno));
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  std::string known;
  // IPv4 before IPv6, because IPv6 link-local addresses need a scope.
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* at = list; at; at = at->ifa_next) {
      if (!at->ifa_addr || at->ifa_addr->sa_family != family) continue;
      known += concat(known.empty() ? "" : ", ", at->ifa_name);
      if (name != at->ifa_name) continue;
      return digits_of(at->ifa_addr, family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    }
  }
  fail(ErrorCode::kNotFound, "this host has no interface ", name, " with an address; it has ", known);
}

}  // namespace

std::string own_address(const std::string& host, const std::string& interface) {
  if (!interface.empty()) return address_of_interface(interface);
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  // Any port works: nothing is sent.
  if (const int error = getaddrinfo(host.c_str(), "29500", &hints, &list); error != 0) {
    fail(ErrorCode::kUnavailable, "the address of ", host, ": ", gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  int reason = 0;
  for (const addrinfo* at = list; at; at = at->ai_next) {
    const FileDescriptor fd(socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own{};
    socklen_t size = sizeof(own);
    if (fd.get() >= 0 && connect(fd.get(), at->ai_addr, at->ai_addrlen) == 0 &&
        getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0) {
      return digits_of(reinterpret_cast<const sockaddr*>(&own), size);
    }
    reason = errno;
  }
  fail(ErrorCode::kUnavailable, "no route from this host to ", host, ": ", std::strerror(reason));
}

}  // namespace tensord::distributed
