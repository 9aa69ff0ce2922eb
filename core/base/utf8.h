#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tensord {

bool is_utf8(std::string_view text);
// The length in bytes of the character at the start of a text; 0 if the text does not start with a character. REQUIRES:
// the text is not empty.
size_t utf8_length(std::string_view text);

// Appends one character in one to four bytes. Of a code above U+1FFFFF it takes the low 21 bits.
void append_utf8(std::string& out, uint32_t code);

// Replaces every byte that belongs to no character by U+FFFD. Untrusted texts (exceptions of scripts, names in files)
// may hold any bytes, and JSON writers, protobuf and clients reject a whole message for one invalid byte.
std::string to_valid_utf8(std::string_view text);

}  // namespace tensord
