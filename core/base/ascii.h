#pragma once

// Character classes of ASCII, independent of the locale. The functions of <cctype> depend on the locale, and Python
// sets one.

namespace tensord {

constexpr bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_ascii_upper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool is_ascii_letter(char c) { return (c >= 'a' && c <= 'z') || is_ascii_upper(c); }
constexpr bool is_ascii_alnum(char c) { return is_ascii_letter(c) || is_ascii_digit(c); }
constexpr char to_ascii_lower(char c) { return is_ascii_upper(c) ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace tensord
