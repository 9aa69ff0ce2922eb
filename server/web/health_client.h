#pragma once

#include <string>

namespace tensord::server {

// The HTTP status that the metrics port of a daemon at `address` (host:port) answers to GET `path`, within
// `timeout_secs` seconds each for the connection and the answer. Throws Error{kUnavailable} when there is no answer.
int ask_health(const std::string& address, const std::string& path, int timeout_secs);

}  // namespace tensord::server
