#include <algorithm>
#include <charconv>
#include <set>

#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "core/files/csv.h"

namespace tensord::files {
namespace {

constexpr size_t kMaxColumns = 1 << 16;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// The position of the first of two bytes; the size of the text if neither occurs.
size_t find_either(std::string_view text, char a, char b, size_t from = 0) {
  const char both[2] = {a, b};
  return std::min(text.find_first_of(std::string_view(both, 2), from), text.size());
}

template <class T>
std::optional<T> parse(std::string_view field) {
  field = trimmed(field);
  if (field.starts_with('+') && field.size() > 1 && field[1] != '-') field.remove_prefix(1);
  T value{};
  const auto [stop, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc() || stop != field.data() + field.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<int64_t> parse_integer(std::string_view field) { return parse<int64_t>(field); }
std::optional<double> parse_number(std::string_view field) { return parse<double>(field); }

std::string shown_text(std::string_view text) {
  std::string out(text.substr(0, 40));
  for (char& c : out) {
    if (c < ' ' || c > '~') c = '?';
  }
  return out.size() < text.size() ? out + "…" : out;
}

std::string describe_field(std::string_view field) {
  field = trimmed(field);
  return field.empty() ? "the field is empty" : concat("'", shown_text(field), "' is not a number");
}

std::string CsvRows::Field::unquoted() const {
  std::string out(text);
  for (size_t at = 0; has_doubled_quotes && (at = out.find("\"\"", at)) != std::string::npos; ++at) out.erase(at, 1);
  return out;
}

CsvRows::CsvRows(std::string source, std::string_view text, char delimiter)
    : source_(std::move(source)), rest_(text), delimiter_(delimiter) {
  check(!is_space(delimiter) || delimiter == '\t', source_, ": the delimiter must not be a space");
  check(delimiter != '"' && delimiter != '\n', source_, ": the delimiter must not be a quote or a line's end");
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (rest_.starts_with(kMark)) rest_.remove_prefix(kMark.size());
}

bool CsvRows::next() {
  check_work_cancelled();
  while (!rest_.empty()) {
    line_ = next_line_;
    const size_t end = std::min(rest_.find('\n'), rest_.size());
    if (trimmed(rest_.substr(0, end)).empty()) {
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++next_line_;
      continue;
    }
    fields_.clear();
    while (read_field()) {
    }
    return true;
  }
  return false;
}

// Returns false after the last field of the row.
bool CsvRows::read_field() {
  if (fields_.size() == kMaxColumns) fail_line("more than ", kMaxColumns, " columns");
  size_t start = 0;
  while (start < rest_.size() && is_space(rest_[start]) && rest_[start] != delimiter_) ++start;
  if (start < rest_.size() && rest_[start] == '"') return read_quoted(start + 1);
  const size_t end = find_either(rest_, delimiter_, '\n');
  fields_.push_back({trimmed(rest_.substr(0, end))});
  return end_field(end);
}

bool CsvRows::read_quoted(size_t start) {
  const auto malformed = [&] { fail_line("a quoted field does not end where it should"); };
  size_t end = start;
  Field field;
  while (true) {
    end = rest_.find('"', end);
    if (end == std::string_view::npos) malformed();
    if (end + 1 >= rest_.size() || rest_[end + 1] != '"') break;
    field.has_doubled_quotes = true;
    end += 2;
  }
  field.text = rest_.substr(start, end - start);
  next_line_ += std::count(field.text.begin(), field.text.end(), '\n');
  const size_t stop = find_either(rest_, delimiter_, '\n', end);
  if (!trimmed(rest_.substr(end + 1, stop - end - 1)).empty()) malformed();
  fields_.push_back(field);
  return end_field(stop);
}

bool CsvRows::end_field(size_t end) {
  const bool is_more = end < rest_.size() && rest_[end] == delimiter_;
  if (end < rest_.size() && !is_more) ++next_line_;
  rest_.remove_prefix(std::min(end + 1, rest_.size()));
  // A separator at the end of the file is followed by an empty field.
  if (is_more && rest_.empty()) fields_.push_back({});
  return is_more && !rest_.empty();
}

void CsvRows::check_count(size_t columns) const {
  if (fields_.size() != columns) fail_line("has ", fields_.size(), " fields, the header has ", columns);
}

std::vector<std::string> read_csv_header(CsvRows& rows) {
  if (!rows.next()) rows.fail_line("there is no header");
  std::set<std::string> known;
  std::vector<std::string> names;
  for (const CsvRows::Field& field : rows.fields()) {
    std::string name = field.unquoted();
    if (name.empty()) rows.fail_line("column ", names.size() + 1, " has no name");
    if (!known.insert(name).second) rows.fail_line("column '", shown_text(name), "' is named twice");
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace tensord::files
