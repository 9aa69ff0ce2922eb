#include "core/nn/layers/containers.h"

namespace tensord::nn {

Tensors Container::forward(const Tensors&) {
  fail(ErrorCode::kUnimplemented, kind(), ": a container has no forward; call its modules");
}

ModuleList::ModuleList(std::vector<std::shared_ptr<Module>> modules) : Container("ModuleList") {
  for (auto& module : modules) push_back(std::move(module));
}
void ModuleList::push_back(std::shared_ptr<Module> module) {
  register_module(std::to_string(size()), std::move(module));
}
Module& ModuleList::operator[](size_t i) const {
  if (i >= size()) fail(ErrorCode::kOutOfRange, kind(), ": no module ", i, " among ", size());
  return *children()[i].second;
}

ModuleDict::ModuleDict(std::vector<std::pair<std::string, std::shared_ptr<Module>>> modules) : Container("ModuleDict") {
  for (auto& [name, module] : modules) insert(name, std::move(module));
}
void ModuleDict::insert(const std::string& name, std::shared_ptr<Module> module) {
  register_module(name, std::move(module));
}
bool ModuleDict::contains(const std::string& name) const {
  for (const auto& [known, module] : children()) {
    if (known == name) return true;
  }
  return false;
}
Module& ModuleDict::operator[](const std::string& name) const {
  for (const auto& [known, module] : children()) {
    if (known == name) return *module;
  }
  fail(ErrorCode::kNotFound, kind(), ": no module '", name, "'");
}

ParameterList::ParameterList(const std::vector<Tensor>& parameters) : Container("ParameterList") {
  for (const Tensor& parameter : parameters) push_back(parameter);
}
void ParameterList::push_back(const Tensor& parameter) { register_parameter(std::to_string(size()), parameter); }
Tensor ParameterList::operator[](size_t i) const {
  const Tensors all = parameters(false);
  if (i >= all.size()) fail(ErrorCode::kOutOfRange, kind(), ": no parameter ", i, " among ", all.size());
  return all[i];
}

ParameterDict::ParameterDict(const std::vector<NamedTensor>& parameters) : Container("ParameterDict") {
  for (const NamedTensor& each : parameters) insert(each.name, each.tensor);
}
void ParameterDict::insert(const std::string& name, const Tensor& parameter) { register_parameter(name, parameter); }
Tensor ParameterDict::operator[](const std::string& name) const {
  for (const NamedTensor& each : named_parameters(false)) {
    if (each.name == name) return each.tensor;
  }
  fail(ErrorCode::kNotFound, kind(), ": no parameter '", name, "'");
}

}  // namespace tensord::nn
