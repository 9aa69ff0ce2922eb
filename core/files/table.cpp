#include "core/files/table.h"

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/jit/archive/safetensors.h"
#include "core/jit/archive/torch_file.h"

namespace tensord::files {

NamedArrays read_torch_file(const std::string& path) {
  const ops::Value value = jit::load_torch_file(path);
  NamedArrays arrays;
  const auto add = [&](const std::string& name, const ops::Value& item) {
    check(item.is_strided(), path, ": '", name, "' is a ", item.tag_name(), ", not a tensor");
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

std::vector<std::string> split_columns(const std::string& names) {
  std::vector<std::string> out;
  for (size_t begin = 0, end = 0; end != std::string::npos; begin = end + 1) {
    end = names.find(',', begin);
    out.push_back(names.substr(begin, end - begin));
  }
  return out;
}

Tensor DataTable::at_or_joined(const std::string& name) const {
  if (find(name) != nullptr || name.find(',') == std::string::npos) return at(name);
  std::vector<Tensor> parts;
  int64_t width = 0;
  bool is_float = false;
  for (const std::string& part : split_columns(name)) {
    const Tensor& tensor = parts.emplace_back(at(part));
    check(tensor.ndim() <= 2 && !is_complex(tensor.dtype()), "'", part, "' of '", name, "' is ", describe(tensor),
          ", not columns of numbers");
    width += tensor.ndim() == 2 ? tensor.size(1) : 1;
    is_float |= is_floating(tensor.dtype());
  }
  const int64_t count = parts.front().size(0);
  Tensor out = Tensor::empty(Dims{count, width}, is_float ? DType::kFloat64 : DType::kInt64);
  int64_t at = 0;
  for (const Tensor& part : parts) {
    const int64_t columns = part.ndim() == 2 ? part.size(1) : 1;
    const Dims sizes = part.ndim() == 2 ? Dims{count, columns} : Dims{count};
    const Dims strides = part.ndim() == 2 ? Dims{width, 1} : Dims{width};
    out.as_view(sizes, strides, at).copy_from(part);
    at += columns;
  }
  return out;
}

DataTable make_table(const std::string& source, NamedArrays arrays) {
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

std::string extension_of(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  if (!extension.empty()) extension.erase(0, 1);
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension;
}

bool read_arrays(const std::string& path, const std::string& extension, NamedArrays& arrays,
                 const std::vector<std::string>& wanted) {
  if (extension == "npz")
    arrays = read_npz(path);
  else if (extension == "safetensors")
    arrays = jit::read_safetensors(path).tensors;
  else if (extension == "csv")
    arrays = read_csv(path, wanted);
  else if (extension == "pt" || extension == "pth")
    arrays = read_torch_file(path);
  else
    return false;
  return true;
}

DataTable read_table(const std::string& path) {
  NamedArrays arrays;
  if (!read_arrays(path, extension_of(path), arrays)) {
    fail(ErrorCode::kUnimplemented, path, ": files of this kind are not read; .npz, .safetensors, .pt and .csv are");
  }
  return make_table(path, std::move(arrays));
}

}  // namespace tensord::files
