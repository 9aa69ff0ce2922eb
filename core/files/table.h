#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

// Files of named arrays. All readers take the file to be hostile and throw Error that starts with its path: kNotFound,
// kDataLoss (truncated or malformed), kUnimplemented (a dtype that tensors do not have), kInvalidArgument (a cell that
// is no number, with line and column). Arrays may lie in the mapped file; writes to them stay in this process.
namespace tensord::files {

using NamedArrays = std::vector<std::pair<std::string, Tensor>>;

// A zip file of .npy arrays, as numpy.savez and savez_compressed write it. Arrays without a first dimension too.
NamedArrays read_npz(const std::string& path);

// One .npy array.
Tensor read_npy(const std::string& path);

// A header line, then numbers, separated by commas. A column becomes int64 when all of it is integers, else float64.
// Columns named x.0, x.1 … x.n-1 become one array x of n columns, float64 when one of them is. Fields, spaces and lines
// are as in csv.h, which has a reader for other files.
NamedArrays read_csv(const std::string& path);

// What torch.save wrote of a dict of tensors, or of a list or tuple of them ("0", "1" …).
NamedArrays read_torch_file(const std::string& path);

// Named arrays with the same number of rows (sizes of their first dimension).
struct DataTable {
  NamedArrays arrays;
  int64_t rows = 0;

  const Tensor* find(const std::string& name) const;  // null when there is none
  // Throws Error{kInvalidArgument} naming the array and listing those that are there.
  const Tensor& at(const std::string& name) const;
};

// Puts arrays together. Throws Error{kInvalidArgument} that starts with `source` when they have no rows, or not
// the same number of them.
DataTable make_table(const std::string& source, NamedArrays arrays);

// A file by its extension, without the dot and in lower case: "npz", "safetensors", "csv", "pt" or "pth". False for
// others.
bool read_arrays(const std::string& path, const std::string& extension, NamedArrays& arrays);
std::string extension_of(const std::string& path);

// Reads a file of one of these kinds as a table.
DataTable read_table(const std::string& path);

}  // namespace tensord::files
