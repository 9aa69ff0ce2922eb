#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/jit/formats/graph_library.h"
#include "core/jit/ir/graph.h"
#include "core/ops/value.h"

namespace tensord::jit {

// Makes the object of a model from qualified names: "encoder.0.weight" is attribute `weight` of the module `0` of the
// module `encoder`. So parameters and buffers have the names that nn.Module gives them.
class ModuleTree {
 public:
  enum class Kind { kParameter, kBuffer, kConstant };

  // `root` is the qualified name of the model's class; those of the modules below it add their path.
  explicit ModuleTree(std::string root);
  // Throws Error{kDataLoss} when a name is empty, has an empty part, is taken, or goes deeper than any module does.
  void add(const std::string& name, const Tensor& tensor, Kind kind);
  bool has(const std::string& name) const { return places_.contains(name); }
  const std::shared_ptr<ops::ClassType>& root_class() const { return root_->type; }

  // Gives the types to the library and makes the objects, once. Nothing is added afterwards.
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
  std::map<std::string, Module*> places_;  // of each tensor: the module it is an attribute of
};

// The tensor of such a name in an object that was made so. REQUIRES: it is there.
Tensor tensor_at(const ops::ObjectPtr& object, const std::string& name);

}  // namespace tensord::jit
