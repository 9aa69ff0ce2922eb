#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

// Readers for files of named arrays. All of them treat the file as untrusted and throw Error whose message starts with
// its path: kNotFound, kDataLoss (truncated or malformed), kUnimplemented (a dtype that tensors do not support),
// kInvalidArgument (a cell that is not a number, with line and column). Arrays may lie in the mapped file; writes to
// them do not reach the file.
namespace tensord::files {

using NamedArrays = std::vector<std::pair<std::string, Tensor>>;

// Reads a zip file of .npy arrays, as numpy.savez and savez_compressed write it. It also accepts arrays without
// dimensions.
NamedArrays read_npz(const std::string& path);

// Reads one .npy array.
Tensor read_npy(const std::string& path);

// Reads a header line, then numbers separated by commas. A column is int64 if all its cells are integers, otherwise
// float64. Columns named x.0, x.1 … x.n-1 form one array x of n columns, which is float64 if one of them is. csv.h
// describes fields, spaces and lines, and has a reader with options. With `wanted`, cells of other arrays are not read,
// and may be texts: names of arrays, or of columns for DataTable::at_or_joined. Throws Error{kInvalidArgument} if one
// of them is not there.
NamedArrays read_csv(const std::string& path, const std::vector<std::string>& wanted = {});
// Reads the header alone, and throws as read_csv does if one of these is not there.
void check_csv_columns(const std::string& path, const std::vector<std::string>& wanted);

// Reads a file of torch.save with a dict of tensors, or a list or tuple of them (named "0", "1" …).
NamedArrays read_torch_file(const std::string& path);

// Named arrays with the same number of rows, the size of their first dimension.
struct DataTable {
  NamedArrays arrays;
  int64_t rows = 0;

  const Tensor* find(const std::string& name) const;  // null if the table has no such array
  // Throws Error{kInvalidArgument} that names the array and lists the existing ones.
  const Tensor& at(const std::string& name) const;
  // The same, or columns side by side: "age,height" is [rows, 2] where no array has this name, float64 if one of them
  // is of floating-point numbers, otherwise int64.
  Tensor at_or_joined(const std::string& name) const;
};
// "age,height" → "age" and "height".
std::vector<std::string> split_columns(const std::string& names);

// Combines arrays. Throws Error{kInvalidArgument} whose message starts with `source` if an array has no rows, or if the
// numbers of rows differ.
DataTable make_table(const std::string& source, NamedArrays arrays);

// Reads a file by its extension, which is in lower case without the dot: "npz", "safetensors", "csv", "pt" or "pth".
// Returns false for other extensions.
// `wanted`: for files whose other arrays may be unreadable (read_csv).
bool read_arrays(const std::string& path, const std::string& extension, NamedArrays& arrays,
                 const std::vector<std::string>& wanted = {});
std::string extension_of(const std::string& path);

// Reads a file of one of these formats as a table.
DataTable read_table(const std::string& path);

}  // namespace tensord::files
