#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/files/csv.h"
#include "core/files/table.h"

namespace tensord::files {
namespace {

std::optional<bool> parse_bool(std::string_view field) {
  if (field == "1" || field == "true" || field == "True") return true;
  if (field == "0" || field == "false" || field == "False") return false;
  return std::nullopt;
}

// Whether a number is in the range of a floating-point type: a finite number must not become infinite.
template <class T>
bool fits(double value, T converted) {
  return std::isfinite(value) == std::isfinite(static_cast<double>(converted));
}

}  // namespace

CsvReader::CsvReader(const std::string& path, CsvOptions options)
    : path_(path),
      options_(std::move(options)),
      file_(MappedFile::open(path)),
      rows_(path, {file_->data(), file_->size()}, options_.delimiter) {
  std::vector<std::string> known;
  if (options_.has_header) {
    known = read_csv_header(rows_);
  } else if ((has_row_ = rows_.next())) {
    for (size_t i = 0; i < rows_.fields().size(); ++i) known.push_back(std::to_string(i));
  }
  width_ = known.size();
  choose_columns(known);
}

void CsvReader::choose_columns(const std::vector<std::string>& known) {
  const auto place = [&](const std::string& name) {
    const auto found = std::find(known.begin(), known.end(), name);
    check(found != known.end(), path_, ": has no column '", shown_text(name), "'");
    return static_cast<size_t>(found - known.begin());
  };
  for (const auto& [name, dtype] : options_.dtypes) {
    place(name);
    check(!is_complex(dtype), path_, ": column '", shown_text(name), "': ", name_of(dtype), " is not read");
  }
  for (const auto& [name, texts] : options_.classes) place(name);
  names_ = options_.columns.empty() ? known : options_.columns;
  for (const std::string& name : names_) {
    const auto dtype = options_.dtypes.find(name);
    const auto classes = options_.classes.find(name);
    const bool has_classes = classes != options_.classes.end();
    check(!has_classes || dtype == options_.dtypes.end(), path_, ": column '", shown_text(name),
          "' has both classes and a dtype");
    const DType stored = has_classes ? DType::kInt64 : DType::kFloat64;
    columns_.push_back({place(name), dtype != options_.dtypes.end() ? dtype->second : stored,
                        has_classes ? &classes->second : nullptr});
  }
}

void CsvReader::read_cell(const Column& column, const std::string& name, const Tensor& to, int64_t row) {
  const CsvRows::Field& field = rows_.fields()[column.place];
  const auto refuse = [&](const std::string& why) { rows_.fail_line("column '", shown_text(name), "': ", why); };
  const auto out_of_range = [&] {
    refuse(concat("'", shown_text(field.text), "' is out of range of ", name_of(column.dtype)));
  };
  if (column.classes) {
    const auto found = std::find(column.classes->begin(), column.classes->end(), field.unquoted());
    if (found == column.classes->end()) refuse(concat("'", shown_text(field.text), "' is not one of the classes"));
    to.data<int64_t>()[row] = found - column.classes->begin();
    return;
  }
  if (column.dtype == DType::kBool) {
    const auto value = parse_bool(field.text);
    if (!value) refuse(concat("'", shown_text(field.text), "' is not a bool"));
    to.data<bool>()[row] = *value;
    return;
  }
  dispatch_all(column.dtype, "CsvReader", [&]<class T>() {
    if constexpr (std::is_integral_v<T>) {
      const auto value = parse_integer(field.text);
      if (!value)
        refuse(parse_number(field.text) ? concat("'", shown_text(field.text), "' is not a 64-bit integer")
                                        : describe_field(field.text));
      if (*value < static_cast<int64_t>(std::numeric_limits<T>::min()) ||
          *value > static_cast<int64_t>(std::numeric_limits<T>::max()))
        out_of_range();
      to.data<T>()[row] = static_cast<T>(*value);
    } else {
      const auto value = parse_number(field.text);
      if (!value) refuse(describe_field(field.text));
      const T converted = static_cast<T>(*value);
      if (!fits(*value, converted)) out_of_range();
      to.data<T>()[row] = converted;
    }
  });
}

std::optional<std::vector<Tensor>> CsvReader::next(int64_t rows) {
  check(rows > 0, path_, ": expected to read at least 1 row but got ", rows);
  if (!has_row_ && !(has_row_ = rows_.next())) return std::nullopt;
  // Every row takes at least one byte, which bounds the number of rows.
  const int64_t max = std::min<int64_t>(rows, static_cast<int64_t>(rows_.rest_bytes()) + 1);
  std::vector<Tensor> columns;
  for (const Column& column : columns_) columns.push_back(Tensor::empty(Dims{max}, column.dtype));
  int64_t count = 0;
  while (has_row_ && count < max) {
    rows_.check_count(width_);
    for (size_t i = 0; i < columns_.size(); ++i) read_cell(columns_[i], names_[i], columns[i], count);
    ++count;
    has_row_ = rows_.next();
  }
  for (Tensor& column : columns) column = column.as_view(Dims{count}, Dims{1}, 0);
  return columns;
}

}  // namespace tensord::files
