#include "core/jit/formats/new_weights.h"

#include <cstring>
#include <filesystem>

#include "core/base/error.h"

namespace tensord::jit {
namespace {

constexpr const char* kFileName = "weights.safetensors";

bool has_same_bytes(const Tensor& a, const Tensor& b) {
  return a.size_bytes() == 0 || std::memcmp(a.raw_data(), b.raw_data(), a.size_bytes()) == 0;
}

}  // namespace

std::string weights_beside(const std::string& model) {
  const std::filesystem::path file = std::filesystem::path(model).parent_path() / kFileName;
  std::error_code error;
  return std::filesystem::exists(file, error) ? file.string() : std::string();
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
  std::map<const TensorImpl*, std::string> names;  // of the file, by tensor that was replaced
  for (const auto& [name, given] : file_.tensors) {
    const std::string what = concat(path_, ": '", name.substr(0, 200), "'");
    const auto found = by_name.find(name);
    check(found != by_name.end(), what, ": the model has no parameter or buffer of this name");
    const Tensor& own = found->second;
    check(own.sizes() == given.sizes(), what, ": has shape ", given.sizes(), ", the model's has ", own.sizes());
    check(own.dtype() == given.dtype(), what, ": is of type ", name_of(given.dtype()), ", the model's of ",
          name_of(own.dtype()));
    for (const auto* other : by_storage[own.storage().get()]) {
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
