#pragma once

#include <sys/socket.h>

#include <array>
#include <compare>
#include <cstdint>
#include <string>

namespace tensord::server {

// The origin of a connection for limits: an IPv4 address, or the /64 network of an IPv6 address, since one machine may
// have all of it. Unix sockets have none: file permissions control who may connect.
class PeerAddress {
 public:
  PeerAddress() = default;
  explicit PeerAddress(const sockaddr_storage& address);

  bool is_known() const { return is_known_; }
  std::string text() const;  // "192.0.2.1", "2001:db8::", "unix"
  auto operator<=>(const PeerAddress&) const = default;

 private:
  std::array<uint8_t, 16> bytes_{};  // IPv4 addresses are IPv4-mapped
  bool is_known_ = false;
};

}  // namespace tensord::server
