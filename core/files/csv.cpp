#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>

#include "core/base/error.h"
#include "core/files/csv.h"
#include "core/files/table.h"

namespace tensord::files {
namespace {

// One or more columns of numbers by row. The values are integers until a cell is not one. Both types take 8 bytes.
struct Array {
  std::string name;
  int64_t width = 1;
  bool is_joined = false;  // made of the columns name.0, name.1 …
  bool is_float = false;
  bool is_wanted = true;
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
  int64_t place = 0;  // index within the array's row
  bool is_wanted = true;
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
  explicit Reader(const std::string& path)
      : file_(MappedFile::open(path)), rows_(path, {file_->data(), file_->size()}) {}

  void read_header(const std::vector<std::string>& wanted) {
    for (std::string& name : read_csv_header(rows_)) columns_.push_back({std::move(name)});
    make_arrays();
    if (!wanted.empty()) choose(wanted);
  }
  NamedArrays read(const std::vector<std::string>& wanted) {
    read_header(wanted);
    CsvRows counted = rows_;
    int64_t rows = 0;
    while (counted.next()) ++rows;
    for (Array& array : arrays_) {
      if (!array.is_wanted) continue;
      const size_t cells = static_cast<size_t>(rows) * static_cast<size_t>(array.width);
      array.storage = allocate_storage(cells * sizeof(int64_t), {});
      std::memset(array.storage->data(), 0, cells * sizeof(int64_t));
    }
    for (int64_t row = 0; rows_.next(); ++row) {
      rows_.check_count(columns_.size());
      for (size_t i = 0; i < columns_.size(); ++i) {
        if (columns_[i].is_wanted) read_cell(row, columns_[i], rows_.fields()[i].text);
      }
    }
    NamedArrays named;
    for (const Array& array : arrays_) {
      if (!array.is_wanted) continue;
      const Dims sizes = array.is_joined ? Dims{rows, array.width} : Dims{rows};
      const DType dtype = array.is_float ? DType::kFloat64 : DType::kInt64;
      named.emplace_back(array.name, Tensor::from_storage(array.storage, sizes, contiguous_strides(sizes), 0, dtype));
    }
    return named;
  }

 private:
  // Joins x.0 … x.n-1 if all of them exist.
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
      const std::string shown = shown_text(name);
      if (!is_clear) rows_.fail_line("columns '", shown, "' and '", shown, ".0' both give the array '", shown, "'");
      column.array = at->second;
      column.place = is_joined ? split->second : 0;
    }
  }
  Array* find(const std::string& name) {
    const auto found = std::ranges::find(arrays_, name, &Array::name);
    return found == arrays_.end() ? nullptr : &*found;
  }
  void choose(const std::vector<std::string>& wanted) {
    for (Array& array : arrays_) array.is_wanted = false;
    for (const std::string& name : wanted) {
      for (const std::string& part : find(name) ? std::vector{name} : split_columns(name)) {
        if (Array* const array = find(part)) {
          array->is_wanted = true;
          continue;
        }
        std::string names;
        for (const Array& array : arrays_) names += (names.empty() ? "'" : ", '") + shown_text(array.name) + "'";
        fail(ErrorCode::kInvalidArgument, "the data has no array '", part, "'; it has ", names);
      }
    }
    for (Column& column : columns_) column.is_wanted = arrays_[column.array].is_wanted;
  }
  // The names are distinct, so n indices below n are exactly 0 … n-1.
  static bool is_complete(const std::vector<int64_t>& indices) {
    return std::all_of(indices.begin(), indices.end(),
                       [&](int64_t index) { return index < static_cast<int64_t>(indices.size()); });
  }

  void read_cell(int64_t row, const Column& column, std::string_view field) {
    Array& array = arrays_[column.array];
    const int64_t at = row * array.width + column.place;
    if (const auto integer = parse_integer(field)) {
      if (array.is_float)
        array.cells<double>()[at] = static_cast<double>(*integer);
      else
        array.cells<int64_t>()[at] = *integer;
      return;
    }
    const auto number = parse_number(field);
    if (!number) rows_.fail_line("column '", shown_text(column.name), "': ", describe_field(field));
    if (!array.is_float) array.become_float(row + 1);
    array.cells<double>()[at] = *number;
  }

  const std::shared_ptr<const MappedFile> file_;
  CsvRows rows_;
  std::vector<Column> columns_;
  std::vector<Array> arrays_;
};

}  // namespace

NamedArrays read_csv(const std::string& path, const std::vector<std::string>& wanted) {
  return Reader(path).read(wanted);
}

void check_csv_columns(const std::string& path, const std::vector<std::string>& wanted) {
  Reader(path).read_header(wanted);
}

}  // namespace tensord::files
