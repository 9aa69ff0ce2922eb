#pragma once

#include <string>
#include <string_view>

namespace tensord {

bool is_utf8(std::string_view text);

// Texts from outside (what scripts raise, names in files) may hold any bytes, and JSON writers, protobuf and clients
// refuse a whole message for one that is not UTF-8. Every byte that belongs to no character becomes U+FFFD.
std::string to_valid_utf8(std::string_view text);

}  // namespace tensord
