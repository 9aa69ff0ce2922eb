#pragma once

#include <string>
#include <vector>

namespace tensord::server {

// Listening sockets inherited from systemd ($LISTEN_PID, $LISTEN_FDS, $LISTEN_FDNAMES), so that clients may connect
// while the daemon starts or restarts. All are for gRPC.
struct InheritedSockets {
  std::vector<int> tcp, unix_domain;
  std::string tcp_host;   // of the first of `tcp`: "127.0.0.1"
  std::string unix_path;  // of the first of `unix_domain`
  bool empty() const { return tcp.empty() && unix_domain.empty(); }
};

// The inherited sockets of this process; may be empty. The caller owns them. Throws Error{kInvalidArgument} for a
// descriptor that is not a listening stream socket, and {kUnimplemented} for one that is named for something other than
// gRPC.
InheritedSockets take_inherited_sockets();

}  // namespace tensord::server
