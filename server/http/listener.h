#pragma once

#include <string>
#include <vector>

namespace tensord::server {

// Listens on all addresses of the name, on one port; port 0 selects a free one. The caller owns the descriptors. None:
// the address is in use or not local.
std::vector<int> bind_listeners(const std::string& address, int port);

// 0 for a Unix socket.
int port_of(int listener);

}  // namespace tensord::server
