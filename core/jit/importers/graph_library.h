#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/jit/ir/function.h"

namespace tensord::jit {

// The functions of a model whose reader builds graphs directly. The reader fills it; it does not change afterwards.
class GraphLibrary final : public FunctionLibrary {
 public:
  void add_type(const std::shared_ptr<const ops::ClassType>& type) { types_[type->name()] = type; }
  // REQUIRES: `function->name` is "CLASS.METHOD", and its first argument is self.
  void add_method(const std::string& class_name, const std::string& method, std::unique_ptr<Function> function);

  const Function* find_function(const std::string& qualified_name) const override;
  const Function* find_method(const std::string& class_name, const std::string& method) const override;
  ops::TypePtr find_type(const std::string& qualified_name) const override;
  std::vector<std::string> method_names(const std::string& class_name) const override;

 private:
  std::map<std::string, std::unique_ptr<const Function>> functions_;
  std::map<std::string, std::vector<std::string>> methods_;  // by class, in the order of addition
  std::map<std::string, ops::TypePtr> types_;
};

}  // namespace tensord::jit
