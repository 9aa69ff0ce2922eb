#include "server/transport/hosts/peer_host.h"

namespace tensord::server {

std::string host_of_peer(const std::string& peer) {
  if (peer.starts_with("unix")) return "127.0.0.1";
  std::string host = peer.substr(peer.find(':') + 1);
  host = host.substr(0, host.rfind(':'));
  for (const char* escaped : {"%5B", "%5D"}) {
    if (const size_t at = host.find(escaped); at != std::string::npos) host.erase(at, 3);
  }
  std::erase(host, '[');
  std::erase(host, ']');
  return host;
}

}  // namespace tensord::server
