#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace tensord::server {

// Named arrays with the same number of rows (sizes of their first dimension).
struct DataTable {
  std::vector<std::pair<std::string, Tensor>> arrays;
  int64_t rows = 0;

  const Tensor* find(const std::string& name) const;  // null when there is none
  // Throws Error{kInvalidArgument} naming the array and listing those that are there.
  const Tensor& at(const std::string& name) const;
};

// Reads a data file by its extension: .npz, .safetensors, .pt (a dict of tensors), .csv (a header line, then numbers;
// each column an array of one dimension), .requests (of --capture-dir). Tensors may lie in the mapped file, and may be
// written to without changing it; what is allocated is charged to the calling thread's memory owner. The file is taken
// to be hostile. Throws Error that starts with the file's path.
DataTable read_data_file(const std::string& path);

// Puts arrays together. Throws Error{kInvalidArgument} that starts with `source` when they have no rows, or not
// the same number of them.
DataTable make_table(const std::string& source, std::vector<std::pair<std::string, Tensor>> arrays);

}  // namespace tensord::server
