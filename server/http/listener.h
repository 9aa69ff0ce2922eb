#pragma once

#include <string>
#include <vector>

namespace tensord::server {

// Listens on all addresses that the name has, on one port; port 0 takes a free one. The files are the caller's; none:
// the address is in use, or not one of this machine.
std::vector<int> bind_listeners(const std::string& address, int port);

// 0: of a Unix socket.
int port_of(int listener);

}  // namespace tensord::server
