#include "server/training/data_file.h"

#include <filesystem>

#include "core/base/error.h"
#include "core/jit/archive/torch_file.h"

namespace tensord::server {
namespace {

DataTable read_torch(const std::string& path) {
  const ops::Value value = jit::load_torch_file(path);
  check(value.is_dict(), path, ": holds a ", value.tag_name(), ", not a dict of tensors by name");
  std::vector<std::pair<std::string, Tensor>> arrays;
  for (const auto& [key, item] : value.to_dict()->items()) {
    check(key.is_string() && item.is_tensor(), path, ": holds something else than tensors by name");
    arrays.emplace_back(key.to_string(), item.to_tensor().contiguous());
  }
  return make_table(path, std::move(arrays));
}

}  // namespace

const Tensor* DataTable::find(const std::string& name) const {
  for (const auto& [array, tensor] : arrays) {
    if (array == name) return &tensor;
  }
  return nullptr;
}

const Tensor& DataTable::at(const std::string& name) const {
  if (const Tensor* tensor = find(name)) return *tensor;
  std::string names;
  for (const auto& [array, tensor] : arrays) names += (names.empty() ? "'" : ", '") + array + "'";
  fail(ErrorCode::kInvalidArgument, "the data has no array '", name, "'; it has ", names);
}

DataTable make_table(const std::string& source, std::vector<std::pair<std::string, Tensor>> arrays) {
  check(!arrays.empty(), source, ": holds no arrays");
  DataTable table;
  for (const auto& [name, tensor] : arrays) {
    check(tensor.ndim() > 0, source, ": '", name, "' is a single number, not an array of rows");
    if (&name == &arrays.front().first) table.rows = tensor.size(0);
    check(tensor.size(0) == table.rows, source, ": '", name, "' has ", tensor.size(0), " rows, '", arrays.front().first,
          "' has ", table.rows);
  }
  check(table.rows > 0, source, ": holds no rows");
  table.arrays = std::move(arrays);
  return table;
}

DataTable read_data_file(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".pt" || extension == ".pth") return read_torch(path);
  fail(ErrorCode::kUnimplemented, path, ": files of this kind are not read; .npz, .safetensors, .pt and .csv are");
}

}  // namespace tensord::server
