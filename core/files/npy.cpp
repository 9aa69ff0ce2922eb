#include "core/files/npy.h"

#include <charconv>
#include <utility>

#include "core/base/error.h"
#include "core/jit/archive/zip.h"
#include "core/tensor/memory/owner_limit.h"

namespace tensord::files {
namespace {

constexpr size_t kMaxHeader = 64 << 10;

// Reads the header of a .npy entry: a Python dict literal with the keys descr, fortran_order and shape.
class HeaderParser {
 public:
  HeaderParser(std::string source, std::string_view text) : source_(std::move(source)), rest_(text) {}

  NpyHeader parse() {
    NpyHeader header;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr" && !std::exchange(has_descr, true)) {
        if (peek() == '[') unsupported("is a structured array");
        header.descr = string();
      } else if (key == "fortran_order" && !std::exchange(has_order, true)) {
        header.is_fortran = boolean();
      } else if (key == "shape" && !std::exchange(has_shape, true)) {
        header.shape = tuple();
      } else {
        malformed();
      }
      if (!accept(',') && peek() != '}') malformed();
    }
    if (!has_descr || !has_order || !has_shape) malformed();
    return header;
  }

  [[noreturn]] void malformed() const { fail(ErrorCode::kDataLoss, source_, ": the array's header is malformed"); }
  [[noreturn]] void unsupported(std::string_view what) const { fail(ErrorCode::kUnimplemented, source_, ": ", what); }

 private:
  void skip_spaces() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }
  char peek() {
    skip_spaces();
    return rest_.empty() ? '\0' : rest_[0];
  }
  bool accept(char c) {
    if (peek() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) malformed();
  }
  std::string string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') malformed();
    const size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) malformed();
    const std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }
  bool boolean() {
    skip_spaces();
    for (const std::string_view word : {std::string_view("True"), std::string_view("False")}) {
      if (rest_.substr(0, word.size()) != word) continue;
      rest_.remove_prefix(word.size());
      return word == "True";
    }
    malformed();
  }
  Dims tuple() {
    Dims sizes;
    expect('(');
    while (!accept(')')) {
      skip_spaces();
      int64_t value = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
      if (error != std::errc() || value < 0 || sizes.size() >= kMaxDims) malformed();
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
      accept('L');  // the suffix that Python 2 wrote for long integers
      sizes.push_back(value);
      if (!accept(',') && peek() != ')') malformed();
    }
    return sizes;
  }

  const std::string source_;
  std::string_view rest_;
};

}  // namespace

NpyHeader read_npy_header(const std::string& source, std::string_view bytes) {
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(bytes[i])); };
  if (bytes.size() < 10 || bytes.substr(0, 6) != std::string_view("\x93NUMPY", 6))
    fail(ErrorCode::kDataLoss, source, ": is not a .npy array");
  const size_t version = byte(6), length_bytes = version == 1 ? 2 : 4, begin = 8 + length_bytes;
  if (version < 1 || version > 3)
    fail(ErrorCode::kUnimplemented, source, ": version ", version, " of .npy is not read");
  if (bytes.size() < begin) fail(ErrorCode::kDataLoss, source, ": is truncated");
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) length |= byte(8 + i) << (8 * i);
  if (length > kMaxHeader || length > bytes.size() - begin)
    fail(ErrorCode::kDataLoss, source, ": claims a header of ", length, " bytes");
  NpyHeader header = HeaderParser(source, bytes.substr(begin, length)).parse();
  header.data_begin = begin + length;
  return header;
}

void read_npz_entries(const std::string& path, size_t max_bytes, const ReadNpy& read) {
  jit::ZipOptions options;
  options.max_inflated_bytes = max_bytes;
  options.max_entries = 1 << 16;
  const auto zip = jit::ZipArchive::open(path, options);
  uint64_t asked = 0;  // each entry lies in the file, or the options bound it
  for (const auto& entry : zip->entries()) asked += entry.size;
  check_room(asked, path);
  for (const auto& entry : zip->entries()) {
    constexpr std::string_view kSuffix = ".npy";
    const bool is_array = entry.name.size() > kSuffix.size() && entry.name.ends_with(kSuffix);
    if (!is_array) fail(ErrorCode::kDataLoss, path, ": entry '", entry.name, "' is not a .npy array");
    const std::string name = entry.name.substr(0, entry.name.size() - kSuffix.size());
    const std::string source = concat(path, ": '", name, "'");
    try {
      read(name, source, zip->storage(entry));
    } catch (const Error& error) {
      // checked_numel and similar functions do not know the path of the file.
      if (std::string_view(error.what()).starts_with(path)) throw;
      fail(error.code(), source, ": ", error.what());
    }
  }
}

}  // namespace tensord::files
