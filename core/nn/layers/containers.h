#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/nn/module.h"

// Modules and parameters by index or name; Sequential is in layers.h. They only hold modules: forward() throws.
namespace tensord::nn {

class Container : public Module {
 public:
  using Module::Module;
  Tensors forward(const Tensors& inputs) override;
};

// Named "0", "1" …
class ModuleList final : public Container {
 public:
  explicit ModuleList(std::vector<std::shared_ptr<Module>> modules = {});
  void push_back(std::shared_ptr<Module> module);
  size_t size() const { return children().size(); }
  Module& operator[](size_t i) const;  // throws Error{kOutOfRange}
  template <class M>
  M& at(size_t i) const {
    auto* module = dynamic_cast<M*>(&(*this)[i]);
    check(module != nullptr, kind(), ": ", i, " is a ", (*this)[i].kind());
    return *module;
  }
};

// In the order of insertion.
class ModuleDict final : public Container {
 public:
  explicit ModuleDict(std::vector<std::pair<std::string, std::shared_ptr<Module>>> modules = {});
  void insert(const std::string& name, std::shared_ptr<Module> module);
  bool contains(const std::string& name) const;
  size_t size() const { return children().size(); }
  Module& operator[](const std::string& name) const;  // throws Error{kNotFound}
};

class ParameterList final : public Container {
 public:
  explicit ParameterList(const std::vector<Tensor>& parameters = {});
  void push_back(const Tensor& parameter);
  size_t size() const { return parameters(false).size(); }
  Tensor operator[](size_t i) const;  // throws Error{kOutOfRange}
};

class ParameterDict final : public Container {
 public:
  explicit ParameterDict(const std::vector<NamedTensor>& parameters = {});
  void insert(const std::string& name, const Tensor& parameter);
  size_t size() const { return parameters(false).size(); }
  Tensor operator[](const std::string& name) const;  // throws Error{kNotFound}
};

}  // namespace tensord::nn
