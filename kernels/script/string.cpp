#include <algorithm>
#include <cctype>

#include "core/ops/op.h"

// Python's str methods, on bytes as in libtorch.
namespace tensord::kernels {

namespace {

// The longest text that a script may request by padding or repetition.
constexpr int64_t kMaxText = int64_t{1} << 28;

void check_text_size(int64_t size) { check(size <= kMaxText, "a string of ", size, " bytes is too long"); }

using ops::List;
using ops::Value;
using Text = const std::string&;

List strings(const std::vector<std::string>& parts) {
  std::vector<Value> items;
  for (const std::string& part : parts) items.emplace_back(part);
  return ops::make_list(ops::string_type(), std::move(items));
}

template <int (*kConvert)(int)>
std::string map_characters(Text text) {
  std::string out = text;
  for (char& c : out) c = static_cast<char>(kConvert(static_cast<unsigned char>(c)));
  return out;
}

template <int (*kTest)(int)>
bool all_characters(Text text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return kTest(c) != 0; });
}

std::string capitalize(Text text) {
  std::string out = map_characters<std::tolower>(text);
  if (!out.empty()) out[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(out[0])));
  return out;
}

std::string title(Text text) {
  std::string out = text;
  bool in_word = false;
  for (char& c : out) {
    const auto byte = static_cast<unsigned char>(c);
    c = static_cast<char>(in_word ? std::tolower(byte) : std::toupper(byte));
    in_word = std::isalpha(byte) != 0;
  }
  return out;
}

std::string swap_case(Text text) {
  std::string out = text;
  for (char& c : out) {
    const auto byte = static_cast<unsigned char>(c);
    c = static_cast<char>(std::islower(byte) ? std::toupper(byte) : std::tolower(byte));
  }
  return out;
}

bool is_title(Text text) {
  bool in_word = false, has_letter = false;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalpha(byte)) {
      if (in_word ? std::isupper(byte) : std::islower(byte)) return false;
      has_letter = true;
    }
    in_word = std::isalpha(byte) != 0;
  }
  return has_letter;
}

bool is_case(Text text, int (*wanted)(int), int (*unwanted)(int)) {
  bool found = false;
  for (const char c : text) {
    if (unwanted(static_cast<unsigned char>(c))) return false;
    found = found || wanted(static_cast<unsigned char>(c));
  }
  return found;
}

// libtorch accepts no digits in identifiers.
bool is_identifier(Text text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) return false;
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalpha(c) != 0; });
}

enum class Side { kLeft, kMiddle, kRight };

// The padded text, with the text at the given side.
std::string padded(Text text, int64_t width, Text fill, Side side) {
  check(fill.size() == 1, "TypeError: The fill character must be exactly one character long");
  check_text_size(width);
  const int64_t missing = std::max<int64_t>(0, width - static_cast<int64_t>(text.size()));
  // Centered: an odd space goes to the right, or to the left if the width is odd.
  const int64_t half = width % 2 == 0 ? missing / 2 : (missing + 1) / 2;
  const int64_t left = side == Side::kRight ? missing : side == Side::kMiddle ? half : 0;
  return std::string(static_cast<size_t>(left), fill[0]) + text +
         std::string(static_cast<size_t>(missing - left), fill[0]);
}
std::string center(Text text, int64_t width, Text fill) { return padded(text, width, fill, Side::kMiddle); }
std::string left_justify(Text text, int64_t width, Text fill) { return padded(text, width, fill, Side::kLeft); }
std::string right_justify(Text text, int64_t width, Text fill) { return padded(text, width, fill, Side::kRight); }

// Zeros precede even a sign.
std::string zero_fill(Text text, int64_t width) { return padded(text, width, "0", Side::kRight); }

std::string left_strip(Text text, Text characters) {
  const size_t begin = text.find_first_not_of(characters);
  return begin == std::string::npos ? "" : text.substr(begin);
}
std::string right_strip(Text text, Text characters) {
  const size_t end = text.find_last_not_of(characters);
  return end == std::string::npos ? "" : text.substr(0, end + 1);
}
std::string strip(Text text, Text characters) { return left_strip(right_strip(text, characters), characters); }

std::string replace(Text text, Text from, Text to, int64_t limit) {
  std::string out;
  size_t at = 0;
  for (int64_t done = 0; limit < 0 || done < limit; ++done) {
    const size_t found = text.find(from, at);
    if (found == std::string::npos) break;
    out.append(text, at, found - at).append(to);
    at = found + from.size();
    check_text_size(static_cast<int64_t>(out.size()));
    if (from.empty()) {
      if (found >= text.size()) return out;
      out += text[at++];
    }
  }
  return out.append(text, at);
}

// Columns continue across line ends, as in libtorch.
std::string expand_tabs(Text text, int64_t width) {
  std::string out;
  for (const char c : text) {
    const auto column = static_cast<int64_t>(out.size());
    if (c == '\t') {
      const int64_t spaces = width > 0 ? width - column % width : 0;
      check_text_size(column + spaces);
      out.append(static_cast<size_t>(spaces), ' ');
    } else {
      out += c;
    }
  }
  return out;
}

std::string slice_text(Text text, std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  check(step != 0, "slice step cannot be zero");
  const auto size = static_cast<int64_t>(text.size());
  const int64_t lowest = step > 0 ? 0 : -1, highest = step > 0 ? size : size - 1;
  const auto bound = [&](std::optional<int64_t> given, int64_t missing) {
    if (!given || (*given == INT64_MAX && step < 0)) return missing;
    return std::clamp<int64_t>(*given < 0 ? *given + size : *given, lowest, highest);
  };
  const int64_t first = bound(start, step > 0 ? 0 : size - 1), last = bound(end, step > 0 ? size : -1);
  std::string out;
  if (step > 0) {
    for (int64_t i = first; i<last; i = step> last - i ? last : i + step) out += text[i];
  } else {
    for (int64_t i = first; i > last; i += step) out += text[i];
  }
  return out;
}

std::string character(Text text, int64_t index) {
  const auto size = static_cast<int64_t>(text.size());
  const int64_t at = index < 0 ? index + size : index;
  if (at < 0 || at >= size) fail(ErrorCode::kOutOfRange, "string index out of range");
  return std::string(1, text[at]);
}

std::string join(Text separator, const List& parts) {
  std::string out;
  bool is_first = true;
  for (const Value& part : parts->items) {
    if (!is_first) out += separator;
    is_first = false;
    out += part.to_string();
  }
  return out;
}

std::string multiply(Text text, int64_t times) {
  if (text.empty()) return "";
  check(times <= kMaxText / static_cast<int64_t>(text.size()), "a string of ", text.size(),
        " bytes cannot be repeated ", times, " times");
  std::string out;
  for (int64_t i = 0; i < times; ++i) out += text;
  return out;
}

OP("aten::len.str").impl([](Text s) { return static_cast<int64_t>(s.size()); });
OP("aten::add.str").impl([](Text a, Text b) { return a + b; });
OP("aten::mul.str_int").impl(multiply);
OP("aten::__getitem__.str").impl(character);
OP("prim::StringIndex").impl(character);
OP("aten::slice.str").impl(slice_text);
OP("aten::list").impl([](Text text) {
  std::vector<std::string> parts;
  for (const char c : text) parts.emplace_back(1, c);
  return strings(parts);
});
OP("aten::ord").impl([](Text text) {
  check(text.size() == 1, "String for ord() must be 1 character, found ", text.size());
  return static_cast<int64_t>(static_cast<unsigned char>(text[0]));
});
OP("aten::chr").impl([](int64_t code) {
  check(code >= 0 && code <= 1114111, "chr() arg not in range(0x110000), found: ", code);
  return std::string(1, static_cast<char>(code));
});
OP("aten::upper").impl(map_characters<std::toupper>);
OP("aten::lower").impl(map_characters<std::tolower>);
OP("aten::swapcase").impl(swap_case);
OP("aten::capitalize").impl(capitalize);
OP("aten::title").impl(title);
OP("aten::isdigit").impl(all_characters<std::isdigit>);
OP("aten::isdecimal").impl(all_characters<std::isdigit>);
OP("aten::isnumeric").impl(all_characters<std::isdigit>);
OP("aten::isalpha").impl(all_characters<std::isalpha>);
OP("aten::isalnum").impl(all_characters<std::isalnum>);
OP("aten::isspace").impl(all_characters<std::isspace>);
OP("aten::isprintable").impl([](Text text) { return text.empty() || all_characters<std::isprint>(text); });
OP("aten::isidentifier").impl(is_identifier);
OP("aten::istitle").impl(is_title);
OP("aten::isupper").impl([](Text text) { return is_case(text, std::isupper, std::islower); });
OP("aten::islower").impl([](Text text) { return is_case(text, std::islower, std::isupper); });
OP("aten::center").impl(center);
OP("aten::ljust").impl(left_justify);
OP("aten::rjust").impl(right_justify);
OP("aten::zfill").impl(zero_fill);
OP("aten::strip").impl(strip);
OP("aten::lstrip").impl(left_strip);
OP("aten::rstrip").impl(right_strip);
OP("aten::replace").impl(replace);
OP("aten::expandtabs").impl(expand_tabs);
OP("aten::join").impl(join);

}  // namespace
}  // namespace tensord::kernels
