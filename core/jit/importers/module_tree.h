#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/jit/importers/graph_library.h"
#include "core/jit/ir/graph.h"
#include "core/ops/value.h"

namespace tensord::jit {

// Builds a model's object from qualified names: "encoder.0.weight" becomes attribute `weight` of module `0` of module
// `encoder`. Parameters and buffers thus have the names that nn.Module gives them.
class ModuleTree {
 public:
  enum class Kind { kParameter, kBuffer, kConstant };

  // `root` is the qualified name of the model's class; submodules append their path.
  explicit ModuleTree(std::string root);
  // Throws Error{kDataLoss} if a name is empty, has an empty part, is taken, or is nested too deeply.
  void add(const std::string& name, const Tensor& tensor, Kind kind);
  bool has(const std::string& name) const { return places_.contains(name); }
  const std::shared_ptr<ops::ClassType>& root_class() const { return root_->type; }

  // Adds the types to the library and creates the objects. Call once; nothing can be added afterwards.
  ops::ObjectPtr finish(GraphLibrary& library);

  // Reads an attribute at the end of the block. REQUIRES: has(name), and `self` is of the root's class.
  GraphValue* get(Block* block, GraphValue* self, const std::string& name) const;

 private:
  struct Module {
    std::shared_ptr<ops::ClassType> type;
    std::map<std::string, std::unique_ptr<Module>> modules;  // by name
    std::map<std::string, Tensor> tensors;
  };
  Module& module_at(const std::string& path);
  static ops::ObjectPtr make_object(const Module& module, GraphLibrary& library);

  std::unique_ptr<Module> root_;
  std::map<std::string, Module*> places_;  // for each tensor, the module that has it as an attribute
};

// The tensor of this name in an object built by ModuleTree. REQUIRES: it exists.
Tensor tensor_at(const ops::ObjectPtr& object, const std::string& name);

}  // namespace tensord::jit
