#pragma once

#include <string>
#include <string_view>

namespace tensord {

// A text from outside for people to read: what would move a terminal's cursor, change the order that text is shown in,
// or not be shown at all (control characters, U+2028, U+202E and their kind) is written as \uXXXX, \UXXXXXXXX above
// U+FFFF, and a byte that belongs to no character as \xXX.
std::string to_printable(std::string_view text);

// The same of a text that is JSON: such characters, which are in strings there, as JSON escapes them.
std::string to_printable_json(std::string_view json);

}  // namespace tensord
