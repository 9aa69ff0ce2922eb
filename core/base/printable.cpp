#include "core/base/printable.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>

#include "core/base/utf8.h"

namespace tensord {
namespace {

struct CodeRange {
  uint32_t first, last;
};

// Unicode's categories Cc, Cf, Zl and Zp, invisible fillers, and variation selectors.
constexpr CodeRange kHidden[] = {
    {0x0, 0x1f},        {0x7f, 0x9f},       {0xad, 0xad},       {0x34f, 0x34f},     {0x600, 0x605},
    {0x61c, 0x61c},     {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},     {0x8e2, 0x8e2},
    {0x115f, 0x1160},   {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},
    {0x2060, 0x206f},   {0x3164, 0x3164},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
    {0xfff0, 0xfffb},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3},
    {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

bool is_hidden(uint32_t code) {
  const auto* range = std::lower_bound(std::begin(kHidden), std::end(kHidden), code,
                                       [](const CodeRange& it, uint32_t value) { return it.last < value; });
  return range != std::end(kHidden) && range->first <= code;
}

// The code point of one character of valid UTF-8 (is_utf8).
uint32_t code_point_of(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  if (lead < 0x80) return lead;
  uint32_t code = lead & (0x7f >> character.size());
  for (const char next : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(next) & 0x3f);
  return code;
}

void append_number(std::string& out, const char* form, uint32_t code) {
  char text[16];
  std::snprintf(text, sizeof(text), form, code);
  out += text;
}

template <class Escape>
std::string escape_hidden(std::string_view text, const Escape& escape) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    if (length == 0) {
      append_number(out, "\\x%02x", static_cast<unsigned char>(text[0]));
    } else if (const uint32_t code = code_point_of(character); is_hidden(code)) {
      escape(out, code);
    } else {
      out += character;
    }
    text.remove_prefix(character.size());
  }
  return out;
}

}  // namespace

std::string to_printable(std::string_view text) {
  return escape_hidden(
      text, [](std::string& out, uint32_t code) { append_number(out, code > 0xffff ? "\\U%08x" : "\\u%04x", code); });
}

std::string to_printable_json(std::string_view json) {
  return escape_hidden(json, [](std::string& out, uint32_t code) {
    if (code > 0xffff) {
      append_number(out, "\\u%04x", 0xd800 + ((code - 0x10000) >> 10));
      code = 0xdc00 + ((code - 0x10000) & 0x3ff);
    }
    append_number(out, "\\u%04x", code);
  });
}

}  // namespace tensord
