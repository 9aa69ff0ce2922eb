#pragma once

#include <string>

namespace tensord::server {

// The host in gRPC's name of a peer: "ipv4:10.0.0.7:51234" → "10.0.0.7". A Unix socket belongs to this host.
std::string host_of_peer(const std::string& peer);

}  // namespace tensord::server
