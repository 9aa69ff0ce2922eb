#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tensord {

bool is_utf8(std::string_view text);
// Bytes of the character that a text begins with; 0 where it begins with none. REQUIRES: it is not empty.
size_t utf8_length(std::string_view text);

// One character, in one to four bytes; of a code above U+1FFFFF the low 21 bits.
void append_utf8(std::string& out, uint32_t code);

// Texts from outside (what scripts raise, names in files) may hold any bytes, and JSON writers, protobuf and clients
// refuse a whole message for one that is not UTF-8. Every byte that belongs to no character becomes U+FFFD.
std::string to_valid_utf8(std::string_view text);

}  // namespace tensord
