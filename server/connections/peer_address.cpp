#include "server/connections/peer_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace tensord::server {
namespace {

constexpr std::array<uint8_t, 12> kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr size_t kNetworkBytes = 8;

}  // namespace

PeerAddress::PeerAddress(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    std::copy(kMappedPrefix.begin(), kMappedPrefix.end(), bytes_.begin());
    std::memcpy(bytes_.data() + kMappedPrefix.size(), &v4.sin_addr, sizeof(v4.sin_addr));
    is_known_ = true;
  } else if (address.ss_family == AF_INET6) {
    const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    std::memcpy(bytes_.data(), &v6, IN6_IS_ADDR_V4MAPPED(&v6) ? bytes_.size() : kNetworkBytes);
    is_known_ = true;
  }
}

std::string PeerAddress::text() const {
  if (!is_known_) return "unix";
  const bool is_v4 = std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), bytes_.begin());
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(is_v4 ? AF_INET : AF_INET6, bytes_.data() + (is_v4 ? kMappedPrefix.size() : 0), text.data(), text.size());
  return text.data();
}

}  // namespace tensord::server
