#pragma once

#include <string>
#include <vector>

namespace tensord::server {

struct Listeners {
  std::vector<int> files;  // owned by the caller; empty: see `reason`
  std::string reason;
};

// Listens on all addresses of the name, on one port; port 0 selects a free one.
Listeners bind_listeners(const std::string& address, int port);

// 0 for a Unix socket.
int port_of(int listener);

}  // namespace tensord::server
