#include "server/training/weights_update.h"

#include <filesystem>
#include <map>

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/files/table.h"
#include "core/jit/archive/safetensors.h"
#include "core/jit/runtime/module.h"

namespace tensord::server {
namespace {

// A name for messages; the client does not know the file's path.
std::string shown(const std::string& name) { return concat("weights '", name.substr(0, 200), "'"); }

files::NamedArrays read_weights(const std::string& path) {
  return path.ends_with(".safetensors") ? jit::read_safetensors(path).tensors : files::read_torch_file(path);
}

std::shared_ptr<jit::Module> load_for_training(const std::string& path) {
  jit::LoadOptions options;
  options.for_training = true;
  return jit::Module::load(path, options);
}

}  // namespace

void copy_as_base(const std::string& base, const std::string& saved, const std::string& out) {
  if (!base.ends_with(".py") || !out.ends_with(".py")) return copy_to_disk(saved, out);
  const std::shared_ptr<jit::Module> source = load_for_training(base);
  // In its own folder, because the base model's weights may lie next to it and would be read instead.
  const std::filesystem::path apart = std::filesystem::path(out).parent_path() / "trained.pt";
  copy_to_disk(saved, apart.string());
  std::map<std::string, Tensor> trained;
  for (const auto& [name, tensor] : load_for_training(apart.string())->named_tensors()) trained.emplace(name, tensor);
  std::filesystem::remove(apart);
  for (const auto& [name, tensor] : source->named_tensors()) {
    const auto found = trained.find(name);
    check(found != trained.end() && found->second.sizes() == tensor.sizes(), saved, ": has no tensor '", name,
          "' as the model has it");
    tensor.copy_from(found->second);
  }
  source->save(out);
}

void write_with_weights(const std::string& base, const std::string& weights, const std::string& out) {
  const std::shared_ptr<jit::Module> module = load_for_training(base);
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, tensor] : module->named_parameters()) tensors.emplace(name, tensor);
  for (const auto& [name, tensor] : module->named_buffers()) tensors.emplace(name, tensor);
  const files::NamedArrays given = read_weights(weights);
  check(!given.empty(), "the file of weights has no tensors");
  for (const auto& [name, tensor] : given) {
    const auto found = tensors.find(name);
    check(found != tensors.end(), shown(name), ": the model has no parameter or buffer of this name");
    const Tensor& target = found->second;
    check(target.sizes() == tensor.sizes(), shown(name), ": has shape ", tensor.sizes(), ", the model's has ",
          target.sizes());
    const bool can_convert = is_floating(target.dtype()) && is_floating(tensor.dtype());
    check(target.dtype() == tensor.dtype() || can_convert, shown(name), ": is of type ", name_of(tensor.dtype()),
          ", the model's of ", name_of(target.dtype()));
    target.copy_from(tensor);
  }
  module->save(out);
}

}  // namespace tensord::server
