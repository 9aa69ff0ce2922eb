#include "core/jit/importers/new_weights.h"

#include <cstring>
#include <filesystem>

#include "core/base/cancellation.h"
#include "core/base/error.h"
#include "core/jit/archive/torch_file.h"

namespace tensord::jit {
namespace {

constexpr const char* kFileName = "weights.safetensors";

bool has_same_bytes(const Tensor& a, const Tensor& b) {
  return a.size_bytes() == 0 || std::memcmp(a.raw_data(), b.raw_data(), a.size_bytes()) == 0;
}

}  // namespace

std::string weights_beside(const std::string& model) {
  const std::filesystem::path path(model);
  std::vector<std::filesystem::path> names{kFileName};
  if (path.extension() == ".py") {
    names.push_back(path.stem().concat(".safetensors"));
    names.emplace_back("weights.pt");
  }
  for (const std::filesystem::path& name : names) {
    const std::filesystem::path file = path.parent_path() / name;
    std::error_code error;
    if (std::filesystem::exists(file, error)) return file.string();
  }
  return {};
}

NewWeights::NewWeights(const std::string& path, bool copies, bool copies_file) : path_(path) {
  if (!path.ends_with(".pt")) {
    file_ = read_safetensors(path, copies, copies_file);
    return;
  }
  const ops::Value state = load_torch_file(path, {.copies_file = copies_file});
  check(state.is_dict(), path, ": no dict of tensors, as a module's state_dict() is");
  for (const auto& [name, value] : state.to_dict()->items()) {
    check(name.is_string() && value.is_strided() && value.to_tensor().defined(), path, ": '",
          name.is_string() ? name.to_string().substr(0, 200) : name.tag_name(), "' is not a tensor");
    file_.tensors.emplace_back(name.to_string(), value.to_tensor().clone());
  }
}

bool is_whole_storage(const Tensor& tensor) {
  return tensor.offset() == 0 && tensor.is_contiguous() && tensor.size_bytes() == tensor.storage()->size_bytes();
}

std::map<const TensorImpl*, Tensor> NewWeights::match(
    const std::vector<std::pair<std::string, Tensor>>& members) const {
  std::map<std::string, Tensor> by_name;
  std::map<const StorageImpl*, std::vector<const std::pair<std::string, Tensor>*>> by_storage;
  for (const auto& member : members) {
    by_name.insert(member);
    by_storage[member.second.storage().get()].push_back(&member);
  }
  std::map<const TensorImpl*, Tensor> replaced;
  std::map<const TensorImpl*, std::string> names;  // in the file, by the tensor that it replaces
  for (const auto& [name, given] : file_.tensors) {
    const std::string what = concat(path_, ": '", name.substr(0, 200), "'");
    const auto found = by_name.find(name);
    check(found != by_name.end(), what, ": the model has no parameter or buffer of this name");
    const Tensor& own = found->second;
    check(own.sizes() == given.sizes(), what, ": has shape ", given.sizes(), ", the model's has ", own.sizes());
    check(own.dtype() == given.dtype(), what, ": is of type ", name_of(given.dtype()), ", the model's of ",
          name_of(own.dtype()));
    for (const auto* other : by_storage[own.storage().get()]) {
      check_work_cancelled();
      const bool is_tied = other->second.is_same(own) || overlap(other->second, own) == Overlap::kFull;
      if (!is_tied) {
        check(overlap(other->second, own) == Overlap::kNo, what, ": shares memory with '", other->first,
              "' in the model, and cannot be replaced alone");
        continue;
      }
      const auto [slot, is_new] = replaced.try_emplace(other->second.impl(), given);
      if (is_new) {
        names[other->second.impl()] = name;
        continue;
      }
      check(has_same_bytes(slot->second, given), what, ": is the same tensor of the model as '",
            names[other->second.impl()], "', but has other values");
    }
  }
  return replaced;
}

}  // namespace tensord::jit
