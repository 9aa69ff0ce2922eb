#include "server/training/data/data_file.h"

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/jit/archive/torch_file.h"
#include "server/training/data/data_formats.h"

namespace tensord::server {

NamedArrays read_torch_file(const std::string& path) {
  const ops::Value value = jit::load_torch_file(path);
  NamedArrays arrays;
  const auto add = [&](const std::string& name, const ops::Value& item) {
    check(item.is_tensor(), path, ": '", name, "' is a ", item.tag_name(), ", not a tensor");
    arrays.emplace_back(name, item.to_tensor().contiguous());
  };
  if (value.is_dict()) {
    for (const auto& [key, item] : value.to_dict()->items()) {
      check(key.is_string(), path, ": has a key that is a ", key.tag_name(), ", not a name");
      add(key.to_string(), item);
    }
    return arrays;
  }
  check(value.is_list() || value.is_tuple(), path, ": holds a ", value.tag_name(),
        ", not a dict, list or tuple of tensors");
  for (const ops::Value& item : value.is_list() ? value.to_list()->items : value.to_tuple()->items)
    add(std::to_string(arrays.size()), item);
  return arrays;
}

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
  std::string extension = std::filesystem::path(path).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (extension == ".npz") return make_table(path, read_npz(path));
  if (extension == ".safetensors") return make_table(path, read_safetensors(path));
  if (extension == ".requests") return make_table(path, read_requests(path));
  if (extension == ".csv") return make_table(path, read_csv(path));
  if (extension == ".pt" || extension == ".pth") return make_table(path, read_torch_file(path));
  fail(ErrorCode::kUnimplemented, path,
       ": files of this kind are not read; .npz, .safetensors, .pt, .csv and .requests are");
}

}  // namespace tensord::server
