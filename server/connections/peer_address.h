#pragma once

#include <sys/socket.h>

#include <array>
#include <compare>
#include <cstdint>
#include <string>

namespace tensord::server {

// Who a connection comes from, as far as limits go: an IPv4 address, or the network of an IPv6 address (its first 64
// bits, of which one machine has all the rest). Unix sockets have none: the file's permissions say who may come in.
class PeerAddress {
 public:
  PeerAddress() = default;
  explicit PeerAddress(const sockaddr_storage& address);

  bool is_known() const { return is_known_; }
  std::string text() const;  // "192.0.2.1", "2001:db8::", "unix"
  auto operator<=>(const PeerAddress&) const = default;

 private:
  std::array<uint8_t, 16> bytes_{};  // IPv4 as IPv6 maps it
  bool is_known_ = false;
};

}  // namespace tensord::server
