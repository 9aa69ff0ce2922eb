#pragma once

#include <string>

namespace tensord::server {

// The protocol that host:port speaks, found out with plaintext HTTP/2.
enum class PortKind { kNothing, kPlainGrpc, kHttp, kTls };

// Takes a second or two at most. Never throws.
PortKind probe_port(const std::string& address);

}  // namespace tensord::server
