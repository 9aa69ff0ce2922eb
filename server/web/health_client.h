#pragma once

#include <string>

namespace tensord::server {

// Sends GET `path` to the metrics port of the daemon at `address` (host:port) and returns the HTTP status. Connecting
// and waiting for the answer may each take `timeout_secs`. Throws Error{kUnavailable} when there is no answer.
int ask_health(const std::string& address, const std::string& path, int timeout_secs);

}  // namespace tensord::server
