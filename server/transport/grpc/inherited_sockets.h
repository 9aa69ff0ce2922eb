#pragma once

#include <string>
#include <vector>

namespace tensord::server {

// Sockets that listen already when the process starts, as systemd hands them over ($LISTEN_PID, $LISTEN_FDS,
// $LISTEN_FDNAMES): clients may connect while the daemon loads or restarts. All are gRPC's.
struct InheritedSockets {
  std::vector<int> tcp, unix_domain;
  std::string tcp_host;   // of the first of `tcp`: "127.0.0.1"
  std::string unix_path;  // of the first of `unix_domain`
  bool empty() const { return tcp.empty() && unix_domain.empty(); }
};

// Those of this process; none when it was started without. The caller owns them. Throws Error{kInvalidArgument} for
// what is no listening stream socket, and {kUnimplemented} for one that is named for something else than gRPC.
InheritedSockets take_inherited_sockets();

}  // namespace tensord::server
