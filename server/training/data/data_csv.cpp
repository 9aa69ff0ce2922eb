#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "server/training/data/data_formats.h"

namespace tensord::server {
namespace {

constexpr size_t kMaxColumns = 1 << 16;

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// For messages: short, and without bytes that terminals obey.
std::string shown(std::string_view text) {
  std::string out(text.substr(0, 40));
  for (char& c : out) {
    if (c < ' ' || c > '~') c = '?';
  }
  return out.size() < text.size() ? out + "…" : out;
}

// The lines of a file that hold something.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  bool next() {
    while (!rest_.empty()) {
      const size_t end = std::min(rest_.find('\n'), rest_.size());
      line_ = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++number_;
      if (!trimmed(line_).empty()) return true;
    }
    return false;
  }
  std::string_view line() const { return line_; }
  int64_t number() const { return number_; }  // in the file, from 1

 private:
  std::string_view rest_, line_;
  int64_t number_ = 0;
};

// The fields of a line, without quotes around them. Quotes inside of a quoted field are doubled.
class Fields {
 public:
  enum class Next { kField, kEnd, kMalformed };
  explicit Fields(std::string_view line) : rest_(line) {}
  std::string_view field() const { return field_; }
  bool has_doubled_quotes() const { return has_doubled_quotes_; }

  Next next() {
    if (is_done_) return Next::kEnd;
    const size_t start = std::min(rest_.find_first_not_of(" \t"), rest_.size());
    if (start < rest_.size() && rest_[start] == '"') return next_quoted(start + 1);
    const size_t end = std::min(rest_.find(','), rest_.size());
    field_ = trimmed(rest_.substr(0, end));
    has_doubled_quotes_ = false;
    return advance(end);
  }

 private:
  Next next_quoted(size_t start) {
    size_t end = start;
    has_doubled_quotes_ = false;
    while (true) {
      end = rest_.find('"', end);
      if (end == std::string_view::npos) return Next::kMalformed;
      if (end + 1 >= rest_.size() || rest_[end + 1] != '"') break;
      has_doubled_quotes_ = true;
      end += 2;
    }
    field_ = rest_.substr(start, end - start);
    const size_t comma = std::min(rest_.find(',', end), rest_.size());
    return trimmed(rest_.substr(end + 1, comma - end - 1)).empty() ? advance(comma) : Next::kMalformed;
  }
  Next advance(size_t end) {
    is_done_ = end == rest_.size();
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return Next::kField;
  }

  std::string_view rest_, field_;
  bool has_doubled_quotes_ = false, is_done_ = false;
};

// One or several columns of numbers, row after row; integers until a cell is none. Both kinds take 8 bytes.
struct Array {
  std::string name;
  int64_t width = 1;
  bool is_joined = false;  // of columns name.0, name.1 …
  bool is_float = false;
  Storage storage = {};

  template <class T>
  T* cells() const {
    return static_cast<T*>(storage->data());
  }
  void become_float(int64_t rows) {
    for (int64_t i = 0; i < rows * width; ++i) cells<double>()[i] = static_cast<double>(cells<int64_t>()[i]);
    is_float = true;
  }
};
static_assert(sizeof(double) == sizeof(int64_t));

struct Column {
  std::string name;
  size_t array = 0;
  int64_t place = 0;  // within the array's row
};

// "x.12" → "x" and 12.
std::optional<std::pair<std::string, int64_t>> split_index(const std::string& name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0 || dot + 1 == name.size()) return std::nullopt;
  const char *begin = name.data() + dot + 1, *end = name.data() + name.size();
  int64_t index = 0;
  const auto [stop, error] = std::from_chars(begin, end, index);
  const bool is_plain = error == std::errc() && stop == end && index >= 0 && (*begin != '0' || end - begin == 1);
  if (!is_plain) return std::nullopt;
  return std::pair(name.substr(0, dot), index);
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), file_(MappedFile::open(path)), lines_(body()) {}

  NamedArrays read() {
    read_header();
    make_arrays();
    Lines counted = lines_;
    while (counted.next()) ++rows_;
    for (Array& array : arrays_) {
      const size_t cells = static_cast<size_t>(rows_) * static_cast<size_t>(array.width);
      array.storage = allocate_storage(cells * sizeof(int64_t), {});
      std::memset(array.storage->data(), 0, cells * sizeof(int64_t));
    }
    for (int64_t row = 0; lines_.next(); ++row) read_row(row);
    NamedArrays named;
    for (const Array& array : arrays_) {
      const Dims sizes = array.is_joined ? Dims{rows_, array.width} : Dims{rows_};
      const DType dtype = array.is_float ? DType::kFloat64 : DType::kInt64;
      named.emplace_back(array.name, Tensor::from_storage(array.storage, sizes, contiguous_strides(sizes), 0, dtype));
    }
    return named;
  }

 private:
  // Without the mark that some editors put before UTF-8.
  std::string_view body() const {
    constexpr std::string_view kMark = "\xef\xbb\xbf";
    std::string_view text = file_->text();
    if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
    return text;
  }
  template <class... Parts>
  [[noreturn]] void fail_line(const Parts&... parts) const {
    fail(ErrorCode::kInvalidArgument, path_, ": line ", lines_.number(), ": ", parts...);
  }

  void read_header() {
    if (!lines_.next()) fail_line("there is no header");
    Fields fields(lines_.line());
    std::set<std::string> known;
    while (true) {
      const Fields::Next next = fields.next();
      if (next == Fields::Next::kEnd) return;
      if (next == Fields::Next::kMalformed) fail_line("a quoted name does not end where it should");
      std::string name(fields.field());
      for (size_t at = 0; fields.has_doubled_quotes() && (at = name.find("\"\"", at)) != std::string::npos; ++at)
        name.erase(at, 1);
      if (name.empty()) fail_line("column ", columns_.size() + 1, " has no name");
      if (!known.insert(name).second) fail_line("column '", shown(name), "' is named twice");
      if (columns_.size() == kMaxColumns) fail_line("more than ", kMaxColumns, " columns");
      columns_.push_back({std::move(name)});
    }
  }

  // Joins x.0 … x.n-1 when all of them are there.
  void make_arrays() {
    std::map<std::string, std::vector<int64_t>> indices;
    for (const Column& column : columns_) {
      if (const auto split = split_index(column.name)) indices[split->first].push_back(split->second);
    }
    std::map<std::string, size_t> by_name;
    for (Column& column : columns_) {
      const auto split = split_index(column.name);
      const bool is_joined = split && is_complete(indices[split->first]);
      const std::string name = is_joined ? split->first : column.name;
      const auto [at, is_new] = by_name.emplace(name, arrays_.size());
      if (is_new) arrays_.push_back({name, is_joined ? static_cast<int64_t>(indices[name].size()) : 1, is_joined});
      const bool is_clear = is_new || (is_joined && arrays_[at->second].is_joined);
      if (!is_clear)
        fail_line("columns '", shown(name), "' and '", shown(name), ".0' both give the array '", shown(name), "'");
      column.array = at->second;
      column.place = is_joined ? split->second : 0;
    }
  }
  // Names differ, so n indices below n are 0 … n-1.
  static bool is_complete(const std::vector<int64_t>& indices) {
    return std::all_of(indices.begin(), indices.end(),
                       [&](int64_t index) { return index < static_cast<int64_t>(indices.size()); });
  }

  void read_row(int64_t row) {
    Fields fields(lines_.line());
    size_t count = 0;
    while (true) {
      const Fields::Next next = fields.next();
      if (next == Fields::Next::kEnd) break;
      if (next == Fields::Next::kMalformed) fail_line("a quoted field does not end where it should");
      if (count < columns_.size()) read_cell(row, columns_[count], fields.field());
      ++count;
    }
    if (count != columns_.size()) fail_line("has ", count, " fields, the header has ", columns_.size());
  }

  void read_cell(int64_t row, const Column& column, std::string_view field) {
    Array& array = arrays_[column.array];
    const int64_t at = row * array.width + column.place;
    field = trimmed(field);
    if (field.starts_with('+') && field.size() > 1 && field[1] != '-') field.remove_prefix(1);
    const char *begin = field.data(), *end = begin + field.size();
    int64_t integer = 0;
    if (const auto [stop, error] = std::from_chars(begin, end, integer); error == std::errc() && stop == end) {
      if (array.is_float)
        array.cells<double>()[at] = static_cast<double>(integer);
      else
        array.cells<int64_t>()[at] = integer;
      return;
    }
    double number = 0;
    const auto [stop, error] = std::from_chars(begin, end, number);
    if (error != std::errc() || stop != end) {
      fail_line("column '", shown(column.name),
                "': ", field.empty() ? "the field is empty" : concat("'", shown(field), "' is no number"));
    }
    if (!array.is_float) array.become_float(row + 1);
    array.cells<double>()[at] = number;
  }

  const std::string path_;
  const std::shared_ptr<MappedFile> file_;
  Lines lines_;
  std::vector<Column> columns_;
  std::vector<Array> arrays_;
  int64_t rows_ = 0;
};

}  // namespace

NamedArrays read_csv(const std::string& path) { return Reader(path).read(); }

}  // namespace tensord::server
