#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "server/executor/requests/recorded_requests.h"
#include "server/training/data/data_file.h"

namespace tensord::server {
namespace {

// The tensors of one name in all requests, to be concatenated along their first dimension.
struct Column {
  std::string name;
  std::vector<const InferTensor*> parts;
};

// Shape of a row of `tensor`: its shape without the first dimension.
Dims row_shape(const Tensor& tensor) {
  Dims shape = tensor.sizes();
  if (!shape.empty()) shape.erase(0);
  return shape;
}

Tensor join(const std::string& path, const Column& column) {
  const Tensor& first = column.parts.front()->tensor;
  if (!first.defined()) {
    fail(ErrorCode::kUnimplemented, path, ": '", column.name, "' has texts; jobs train on numbers only");
  }
  int64_t rows = 0;
  for (const InferTensor* part : column.parts) {
    const bool fits = part->tensor.defined() && part->tensor.dtype() == first.dtype() &&
                      part->tensor.ndim() == first.ndim() && row_shape(part->tensor) == row_shape(first);
    check(fits, path, ": '", column.name, "' has rows of different shapes or dtypes; ", first.sizes(), " of ",
          name_of(first.dtype()), " in the first request");
    rows += part->tensor.ndim() > 0 ? part->tensor.size(0) : 1;
  }
  Dims shape = row_shape(first);
  shape.insert(0, rows);
  Tensor out = Tensor::empty(shape, first.dtype());
  char* to = static_cast<char*>(out.raw_data());
  for (const InferTensor* part : column.parts) {
    to = std::copy_n(static_cast<const char*>(part->tensor.raw_data()), part->tensor.size_bytes(), to);
  }
  return out;
}

}  // namespace

NamedArrays read_requests(const std::string& path) {
  const std::vector<RecordedRequest> requests = read_recorded_requests(path);
  std::vector<Column> columns;
  std::map<std::string, size_t> by_name;
  const auto add = [&](const InferTensor& tensor, const std::string& name) {
    const auto [found, is_new] = by_name.emplace(name, columns.size());
    if (is_new) columns.push_back({name, {}});
    columns[found->second].parts.push_back(&tensor);
  };
  for (const RecordedRequest& request : requests) {
    for (const InferTensor& input : request.inputs) add(input, input.name);
    for (const InferTensor& output : request.outputs) {
      const bool is_taken = std::any_of(request.inputs.begin(), request.inputs.end(),
                                        [&](const InferTensor& input) { return input.name == output.name; });
      add(output, is_taken ? "output." + output.name : output.name);
    }
  }
  NamedArrays arrays;
  for (const Column& column : columns) {
    check(column.parts.size() == requests.size(), path, ": '", column.name, "' is in ", column.parts.size(), " of ",
          requests.size(), " requests");
    arrays.emplace_back(column.name, join(path, column));
  }
  return arrays;
}

}  // namespace tensord::server
