#pragma once

#include <string>
#include <string_view>

namespace tensord {

// Makes an untrusted text safe to display. Characters that would move a terminal's cursor, reorder the text, or stay
// invisible (control characters, U+2028, U+202E and similar ones) become \uXXXX, or \UXXXXXXXX above U+FFFF. A byte
// that belongs to no character becomes \xXX.
std::string to_printable(std::string_view text);

// Does the same for JSON: such characters, which only occur in its strings, become JSON escapes.
std::string to_printable_json(std::string_view json);

}  // namespace tensord
