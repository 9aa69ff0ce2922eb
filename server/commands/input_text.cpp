#include "server/commands/input_text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>

#include "core/base/error.h"
#include "core/base/nearest.h"

namespace tensord::server {
namespace {

constexpr size_t kShownLetters = 64;

// Length of a leading NAME=. In a path, JSON or text:… other characters come before the first `=`.
size_t input_name_size(const std::string& text) {
  const size_t mark = text.find('=');
  if (mark == std::string::npos || mark == 0) return 0;
  const bool is_name = std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(mark), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-';
  });
  return is_name ? mark : 0;
}

// Parses "1,3,224" or "1x3x224". Returns nullopt if it is not a shape; an empty string is a scalar.
std::optional<std::vector<int64_t>> read_shape(std::string_view text) {
  std::vector<int64_t> shape;
  const char *at = text.data(), *end = at + text.size();
  while (at != end) {
    int64_t size = 0;
    const auto [next, error] = std::from_chars(at, end, size);
    if (error != std::errc() || size < 0) return std::nullopt;
    if (next != end && ((*next != ',' && *next != 'x') || next + 1 == end)) return std::nullopt;
    shape.push_back(size);
    at = next == end ? end : next + 1;
  }
  return shape;
}

// Parses SHAPE[:TYPE].
void read_made_up(const std::string& text, InputText& out) {
  out.kind = InputText::Kind::kRandom;
  const size_t mark = text.find(':');
  out.shape = read_shape(std::string_view(text).substr(0, mark));
  check(out.shape.has_value(), "bad shape '", text.substr(0, mark),
        "'; a shape is whole numbers with commas between them");
  if (mark != std::string::npos) out.type = parse_type_name(text.substr(mark + 1));
}

bool is_whole_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// A shape starts with a digit and is not a JSON number, or is ":TYPE" for a scalar.
bool is_shape(std::string_view text, WholeNumber number) {
  if (text.starts_with(':')) return true;
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  const size_t mark = text.find(':');
  const std::string_view shape = text.substr(0, mark);
  if (mark == std::string_view::npos && is_whole_number(shape)) return number == WholeNumber::kIsSize;
  return shape.find_first_not_of("0123456789,x") == std::string_view::npos;
}

void read_value_text(WholeNumber number, InputText& out) {
  const std::string value = out.value;
  if (value == "random") {
    out.kind = InputText::Kind::kRandom;
  } else if (value.starts_with("random:")) {
    read_made_up(value.substr(7), out);
  } else if (is_shape(value, number)) {
    read_made_up(value, out);
  } else if (value.starts_with("text:")) {
    out.kind = InputText::Kind::kText;
    out.value = value.substr(5);
  } else if (value.starts_with("@")) {
    out.kind = InputText::Kind::kBytes;
    out.value = value.substr(1);
  } else if (value.ends_with(".npz")) {
    check(out.name.empty(), "a .npz file has the names of its inputs in it");
    out.kind = InputText::Kind::kNpz;
  } else if (value.ends_with(".npy")) {
    out.kind = InputText::Kind::kNpy;
  } else if (value.ends_with(".json")) {
    out.kind = InputText::Kind::kJsonFile;
  }
}

}  // namespace

std::string input_place(const std::string& flag, const std::string& name, const std::string& value) {
  const std::string shown = value.size() > kShownLetters ? value.substr(0, kShownLetters) + "…" : value;
  return concat(flag, " ", name, name.empty() ? "'" : "='", shown, "': ");
}

std::string parse_type_name(const std::string& name) {
  static const std::vector<std::string> kNames[] = {
      {"float32", "f32", "FP32"},   {"float64", "f64", "FP64"},  {"float16", "f16", "FP16"},
      {"bfloat16", "bf16", "BF16"}, {"int64", "i64", "INT64"},   {"int32", "i32", "INT32"},
      {"int16", "i16", "INT16"},    {"int8", "i8", "INT8"},      {"uint8", "u8", "UINT8"},
      {"uint16", "u16", "UINT16"},  {"uint32", "u32", "UINT32"}, {"uint64", "u64", "UINT64"},
      {"bool", "bool", "BOOL"}};
  std::vector<std::string> known;
  for (const std::vector<std::string>& names : kNames) {
    if (std::ranges::find(names, name) != names.end()) return names[0];
    known.push_back(names[0]);
  }
  fail(ErrorCode::kInvalidArgument, "no type is called '", name, "'", right_names(name, known));
}

InputText parse_input(const std::string& flag, const std::string& text, WholeNumber number) {
  InputText out;
  const size_t name_size = input_name_size(text);
  if (name_size > 0) out.name = text.substr(0, name_size);
  out.value = name_size > 0 ? text.substr(name_size + 1) : text;
  try {
    read_value_text(number, out);
  } catch (const Error& error) {
    fail(error.code(), input_place(flag, out.name, out.value), error.what());
  }
  return out;
}

}  // namespace tensord::server
