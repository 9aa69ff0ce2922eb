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

// Texts of rows and fields. Fields may be quoted; quotes inside of those are doubled, and they may hold separators and
// line ends. Spaces around a field, quoted or not, and lines with nothing but spaces count for nothing; a mark of UTF-8
// at the start neither.
namespace tensord::files {

// The rows of a text, one after the other. The text must outlive it.
class CsvRows {
 public:
  struct Field {
    std::string_view text;  // without the quotes around it
    bool has_doubled_quotes = false;
    std::string unquoted() const;  // with single quotes
  };
  CsvRows(std::string source, std::string_view text, char delimiter = ',');
  // The next row that holds something; false at the end. Throws Error{kInvalidArgument} naming the line where a quoted
  // field does not end.
  bool next();
  const std::vector<Field>& fields() const { return fields_; }
  int64_t line() const { return line_; }  // where the row begins, from 1
  size_t rest_bytes() const { return rest_.size(); }

  template <class... Parts>
  [[noreturn]] void fail_line(const Parts&... parts) const {
    fail(ErrorCode::kInvalidArgument, source_, ": line ", line_, ": ", parts...);
  }
  // Fails unless the row has this many fields.
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

// The row that has the names of the columns, once each. Throws Error{kInvalidArgument} naming the line.
std::vector<std::string> read_csv_header(CsvRows& rows);

// A field as a number; "+1" is one. Nothing when it is none, or too large.
std::optional<int64_t> parse_integer(std::string_view field);
std::optional<double> parse_number(std::string_view field);
// Why a field is no number, for messages: short, and without bytes that terminals obey.
std::string describe_field(std::string_view field);
std::string shown_text(std::string_view text);

struct CsvOptions {
  char delimiter = ',';
  bool has_header = true;  // without one the columns are named "0", "1" …
  // Those that are wanted, in this order; empty: all.
  std::vector<std::string> columns = {};
  // float64 unless named here. A number that the type cannot hold is refused; bools are 0, 1, true and false.
  std::map<std::string, DType> dtypes = {};
  // Columns of texts: the texts by number; the tensor is int64 and has the numbers.
  std::map<std::string, std::vector<std::string>> classes = {};
};

// Reads a file of any length, some rows at a time. Throws Error that starts with the path: kNotFound, kInvalidArgument
// (options that name no column; rows and cells, with line and column). Thread-safety: none.
class CsvReader {
 public:
  explicit CsvReader(const std::string& path, CsvOptions options = {});
  // Of the tensors that next() gives.
  const std::vector<std::string>& columns() const { return names_; }
  // One tensor of one dimension for each column, of at most so many rows; nothing at the end.
  std::optional<std::vector<Tensor>> next(int64_t rows);

 private:
  struct Column {
    size_t place;  // in the row
    DType dtype;
    const std::vector<std::string>* classes;
  };
  void choose_columns(const std::vector<std::string>& known);
  void read_cell(const Column& column, const std::string& name, const Tensor& to, int64_t row);

  const std::string path_;
  const CsvOptions options_;
  const std::shared_ptr<const MappedFile> file_;
  CsvRows rows_;
  size_t width_ = 0;  // fields in a row
  std::vector<std::string> names_;
  std::vector<Column> columns_;
  bool has_row_ = false;  // a row was read whose turn is next
};

}  // namespace tensord::files
