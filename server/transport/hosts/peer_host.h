#pragma once

#include <string>

namespace tensord::server {

// Of what gRPC calls a peer: "ipv4:10.0.0.7:51234" → "10.0.0.7". A Unix socket is of this host.
std::string host_of_peer(const std::string& peer);

}  // namespace tensord::server
