#include "server/training/weights_update.h"

#include <map>

#include "core/base/error.h"
#include "core/files/table.h"
#include "core/jit/archive/safetensors.h"
#include "core/jit/runtime/module.h"

namespace tensord::server {
namespace {

// A name as messages show it; the path of the file says nothing to a client.
std::string shown(const std::string& name) { return concat("weights '", name.substr(0, 200), "'"); }

files::NamedArrays read_weights(const std::string& path) {
  return path.ends_with(".safetensors") ? jit::read_safetensors(path).tensors : files::read_torch_file(path);
}

}  // namespace

void write_with_weights(const std::string& base, const std::string& weights, const std::string& out) {
  jit::LoadOptions options;
  options.for_training = true;
  const std::shared_ptr<jit::Module> module = jit::Module::load(base, options);
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
