#pragma once

#include <string>
#include <string_view>

namespace tensord::distributed {

// HMAC-SHA256 (RFC 2104), 32 bytes: proves knowledge of `key` without revealing it.
std::string hmac_sha256(std::string_view key, std::string_view message);
// Takes the same time wherever two strings of equal length differ.
bool is_equal_in_constant_time(std::string_view a, std::string_view b);
// From the system's random generator. Throws Error{kUnavailable}.
std::string random_bytes(size_t count);
// "0a1b".
std::string hex_of(std::string_view bytes);

}  // namespace tensord::distributed
