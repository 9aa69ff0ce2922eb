#include "server/rest/json_reader.h"

#include <algorithm>

#include "core/base/ascii.h"
#include "core/base/error.h"
#include "core/base/utf8.h"

namespace tensord::server {
namespace {

constexpr int kMaxJsonDepth = 100;
constexpr size_t kMaxMemberBytes = 64 << 10, kMaxNumberBytes = 4 << 10;
// Bytes parsed between two checks for cancellation.
constexpr size_t kLookBytes = 64 << 10;

}  // namespace

void JsonReader::fail_here(std::string_view reason) const {
  fail(ErrorCode::kInvalidArgument, what_, ": ", reason, " at ", at_);
}

void JsonReader::skip_space() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
    ++at_;
  }
}

bool JsonReader::take(char wanted) {
  skip_space();
  if (at_ >= text_.size() || text_[at_] != wanted) return false;
  ++at_;
  return true;
}

void JsonReader::enter() {
  if (++depth_ > kMaxJsonDepth) fail_here("JSON nesting depth exceeds maximum allowed limit (100)");
}

void JsonReader::look() {
  if (at_ < look_at_ || charge_ == nullptr) return;
  look_at_ = at_ + kLookBytes;
  charge_->check_wanted();
}

JsonReader::Kind JsonReader::peek() {
  look();
  skip_space();
  if (at_ >= text_.size()) fail_here(at_ == 0 || depth_ == 0 ? "The document is empty." : "Invalid value.");
  switch (text_[at_]) {
    case '{': return Kind::kObject;
    case '[': return Kind::kArray;
    case '"': return Kind::kString;
    case 't':
    case 'f': return Kind::kBool;
    case 'n': return Kind::kNull;
    case 'N':
    case 'I': return Kind::kNumber;
    default: break;
  }
  if (text_[at_] != '-' && !is_ascii_digit(text_[at_])) fail_here("Invalid value.");
  return Kind::kNumber;
}

void JsonReader::expect_kind(char wanted) {
  peek();
  if (take(wanted)) return;
  skip();  // reports malformed JSON before a wrong type
  fail_here(wanted == '{' ? "attempt to access JSON non-object as object"
                          : "attempt to access JSON non-array as array");
}

void JsonReader::object(const std::function<void(const std::string& key)>& member) {
  expect_kind('{');
  enter();
  if (!take('}')) {
    do {
      skip_space();
      if (at_ >= text_.size() || text_[at_] != '"') fail_here("Missing a name for object member.");
      const std::string key = member_name();
      if (!take(':')) fail_here("Missing a colon after a name of object member.");
      member(key);
      if (take('}')) break;
      if (!take(',')) fail_here("Missing a comma or } after an object member.");
    } while (true);
  }
  --depth_;
}

bool JsonReader::next_element() {
  if (take(',')) return true;
  if (!take(']')) fail_here("Missing a comma or ] after an array element.");
  return false;
}

void JsonReader::skip_string() {
  ++at_;
  for (;; ++at_) {
    const size_t stop = text_.find_first_of("\"\\", at_);
    if (stop == std::string_view::npos) {
      at_ = text_.size();
      fail_here("Missing a closing quotation mark in string.");
    }
    at_ = stop;
    if (text_[at_] == '"') break;
    ++at_;  // skips the escaped character
  }
  ++at_;
}

// Offset of the closing quote of the string that starts here, or the end of the input.
size_t JsonReader::text_end() const {
  size_t end = at_;
  while (end < text_.size() && text_[end] != '"') {
    end = std::min(text_.find_first_of("\"\\", end), text_.size());
    if (end < text_.size() && text_[end] == '\\') end = std::min(end + 2, text_.size());
  }
  return end;
}

std::string JsonReader::string() {
  if (peek() != Kind::kString) fail_here("attempt to access JSON non-string as string");
  ++at_;
  const size_t end = text_end();
  if (charge_ != nullptr && end - at_ > std::string().capacity()) charge_->grow(end - at_);
  return text_until(end);
}

// Not charged: the name's length is bounded, and it is freed after the member.
std::string JsonReader::member_name() {
  ++at_;
  const size_t end = text_end();
  if (end - at_ > kMaxMemberBytes) fail_here("a name of object member is too long.");
  return text_until(end);
}

// A decoded string is never longer than its source.
std::string JsonReader::text_until(size_t end) {
  std::string out;
  out.reserve(end - at_);
  for (;;) {
    look();
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\') {
      if (static_cast<unsigned char>(text_[at_]) < 0x20) fail_here("Invalid encoding in string.");
      ++at_;
    }
    out.append(text_.substr(begin, at_ - begin));
    if (at_ >= text_.size()) fail_here("Missing a closing quotation mark in string.");
    if (text_[at_++] == '"') return out;
    append_escape(out);
  }
}

// Reads the four hexadecimal digits of \uXXXX, after the u.
uint32_t JsonReader::escaped_unit() {
  uint32_t unit = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    const char letter = at_ < text_.size() ? text_[at_] : '\0';
    const char small = static_cast<char>(letter | 0x20);
    if (is_ascii_digit(letter)) {
      unit = unit * 16 + static_cast<uint32_t>(letter - '0');
    } else if (small >= 'a' && small <= 'f') {
      unit = unit * 16 + static_cast<uint32_t>(small - 'a' + 10);
    } else {
      fail_here("Incorrect hex digit after \\u escape in string.");
    }
  }
  return unit;
}

void JsonReader::append_escape(std::string& out) {
  const char letter = at_ < text_.size() ? text_[at_++] : '\0';
  switch (letter) {
    case '"':
    case '\\':
    case '/': out += letter; return;
    case 'b': out += '\b'; return;
    case 'f': out += '\f'; return;
    case 'n': out += '\n'; return;
    case 'r': out += '\r'; return;
    case 't': out += '\t'; return;
    case 'u': break;
    default: fail_here("Invalid escape character in string.");
  }
  uint32_t point = escaped_unit();
  if (point >= 0xd800 && point < 0xe000) {
    const bool has_second = point < 0xdc00 && text_.substr(at_).starts_with("\\u");
    if (!has_second) fail_here("The surrogate pair in string is invalid.");
    at_ += 2;
    const uint32_t second = escaped_unit();
    if (second < 0xdc00 || second >= 0xe000) fail_here("The surrogate pair in string is invalid.");
    point = 0x10000 + ((point - 0xd800) << 10) + (second - 0xdc00);
  }
  append_utf8(out, point);
}

std::string_view JsonReader::number() {
  if (peek() != Kind::kNumber) fail_here("attempt to access JSON non-number as number");
  const size_t begin = at_;
  const auto here = [this] { return at_ < text_.size() ? text_[at_] : '\0'; };
  const auto digits = [&](const char* reason) {
    if (!is_ascii_digit(here())) fail_here(reason);
    while (is_ascii_digit(here())) ++at_;
  };
  if (here() == '-') ++at_;
  if (here() == 'N' || here() == 'I') {
    take_word(here() == 'N' ? "NaN" : text_.substr(at_).starts_with("Infinity") ? "Infinity" : "Inf");
    return text_.substr(begin, at_ - begin);
  }
  if (here() == '0') {
    ++at_;
    if (is_ascii_digit(here())) fail_here("Invalid value.");
  } else {
    digits("Invalid value.");
  }
  if (here() == '.') {
    ++at_;
    digits("Miss fraction part in number.");
  }
  if (here() == 'e' || here() == 'E') {
    ++at_;
    if (here() == '+' || here() == '-') ++at_;
    digits("Miss exponent in number.");
  }
  if (at_ - begin > kMaxNumberBytes) fail_here("a number is too long.");
  return text_.substr(begin, at_ - begin);
}

void JsonReader::take_word(std::string_view word) {
  if (!text_.substr(at_).starts_with(word)) fail_here("Invalid value.");
  at_ += word.size();
}

bool JsonReader::boolean() {
  if (peek() != Kind::kBool) fail_here("attempt to access JSON non-boolean as boolean");
  const bool value = text_[at_] == 't';
  take_word(value ? "true" : "false");
  return value;
}

void JsonReader::null() {
  if (peek() != Kind::kNull) fail_here("null is expected");
  take_word("null");
}

std::string_view JsonReader::skip(int64_t* elements) {
  const Kind kind = peek();
  const size_t begin = at_;
  switch (kind) {
    case Kind::kObject: object([this](const std::string&) { skip(); }); break;
    case Kind::kArray: array([&] { skip(elements); }); break;
    case Kind::kString: skip_string(); break;
    case Kind::kNumber: number(); break;
    case Kind::kBool: boolean(); break;
    case Kind::kNull: null(); break;
  }
  if (elements != nullptr && kind != Kind::kArray) ++*elements;
  return text_.substr(begin, at_ - begin);
}

void JsonReader::finish() {
  skip_space();
  if (at_ < text_.size()) fail_here("The document root must not be followed by other values.");
}

}  // namespace tensord::server
