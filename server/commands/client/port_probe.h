#pragma once

#include <string>

namespace tensord::server {

// What answers at host:port, asked in HTTP/2 without TLS.
enum class PortKind { kNothing, kPlainGrpc, kHttp, kTls };

// Within a second or two; never throws.
PortKind probe_port(const std::string& address);

}  // namespace tensord::server
