#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/mapped_file.h"
#include "core/tensor/tensor.h"

// Parses rows and fields of CSV. A field may be quoted: then it may hold separators and line ends, and a doubled quote
// stands for one. Spaces around a field (quoted or not), lines of spaces, and a UTF-8 byte order mark at the start are
// ignored.
namespace tensord::files {

// Iterates over the rows of a text, which must outlive the iterator.
class CsvRows {
 public:
  struct Field {
    std::string_view text;  // without the enclosing quotes
    bool has_doubled_quotes = false;
    std::string unquoted() const;  // with doubled quotes replaced by single ones
  };
  CsvRows(std::string source, std::string_view text, char delimiter = ',');
  // Reads the next row that is not empty; false at the end. Throws Error{kInvalidArgument} naming the line if a quoted
  // field is not closed.
  bool next();
  const std::vector<Field>& fields() const { return fields_; }
  int64_t line() const { return line_; }  // the line where the row begins, counted from 1
  size_t rest_bytes() const { return rest_.size(); }

  template <class... Parts>
  [[noreturn]] void fail_line(const Parts&... parts) const {
    fail(ErrorCode::kInvalidArgument, source_, ": line ", line_, ": ", parts...);
  }
  // Throws unless the row has this number of fields.
  void check_count(size_t columns) const;

 private:
  bool read_field();
  bool read_quoted(size_t start);
  bool end_field(size_t end);

  const std::string source_;
  std::string_view rest_;
  const char delimiter_;
  std::vector<Field> fields_;
  int64_t line_ = 0, next_line_ = 1;
};

// Reads the row with the column names, which must be distinct. Throws Error{kInvalidArgument} naming the line.
std::vector<std::string> read_csv_header(CsvRows& rows);

// Parses a field as a number ("+1" is valid). Empty if the field is not a number or is out of range.
std::optional<int64_t> parse_integer(std::string_view field);
std::optional<double> parse_number(std::string_view field);
// Describes a field that is not a number, for error messages: shortened, and without bytes that control a terminal.
std::string describe_field(std::string_view field);
std::string shown_text(std::string_view text);

struct CsvOptions {
  char delimiter = ',';
  bool has_header = true;  // without one the columns are named "0", "1" …
  // The wanted columns in this order; empty means all.
  std::vector<std::string> columns = {};
  // The dtype by column; float64 by default. A number that does not fit the dtype is an error. Bools are 0, 1, true and
  // false.
  std::map<std::string, DType> dtypes = {};
  // For columns of texts: the classes by column. The tensor has dtype int64 and holds the index of each text.
  std::map<std::string, std::vector<std::string>> classes = {};
};

// Reads a file of any length, a limited number of rows at a time. Throws Error whose message starts with the path:
// kNotFound, kInvalidArgument (an option names a missing column, or a row or cell is invalid: the message has the line
// and column). Not thread-safe.
class CsvReader {
 public:
  explicit CsvReader(const std::string& path, CsvOptions options = {});
  // The names of the columns of the tensors that next() returns.
  const std::vector<std::string>& columns() const { return names_; }
  // Returns one 1-D tensor per column with at most `rows` rows; empty at the end.
  std::optional<std::vector<Tensor>> next(int64_t rows);

 private:
  struct Column {
    size_t place;  // index within the row
    DType dtype;
    const std::vector<std::string>* classes;
  };
  void choose_columns(const std::vector<std::string>& known);
  void read_cell(const Column& column, const std::string& name, const Tensor& to, int64_t row);

  const std::string path_;
  const CsvOptions options_;
  const std::shared_ptr<const MappedFile> file_;
  CsvRows rows_;
  size_t width_ = 0;  // fields per row
  std::vector<std::string> names_;
  std::vector<Column> columns_;
  bool has_row_ = false;  // a row is read but not yet returned
};

}  // namespace tensord::files
