#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "core/jit/frontend/compilation_unit.h"

namespace tensord::jit {

// The classes and functions of one source file, and a class kFunctionsClass whose methods are its free functions.
// Thread-safe.
class SourceLibrary final : public FunctionLibrary {
 public:
  // Module name of the source, for qualified names: "__torch__.Net".
  static constexpr const char* kModule = "__torch__";
  static constexpr const char* kFunctionsClass = "__torch__.Functions";

  // `path` names the file in errors. Throws Error with file, line and caret for invalid source.
  SourceLibrary(const std::string& path, std::string text);

  const Function* find_function(const std::string& qualified_name) const override {
    return unit_.find_function(qualified_name);
  }
  const Function* find_method(const std::string& class_name, const std::string& method) const override;
  ops::TypePtr find_type(const std::string& qualified_name) const override;
  std::vector<std::string> method_names(const std::string& class_name) const override;

  // Qualified names in source order.
  std::vector<std::string> class_names() const { return unit_.class_names(); }

 private:
  const CompilationUnit unit_;
  const std::shared_ptr<const ops::ClassType> functions_class_;
  std::vector<std::string> functions_;  // their unqualified names; empty if the source has a class of that name
  mutable Mutex mutex_;
  mutable std::map<std::string, std::unique_ptr<const Function>> methods_ TENSORD_GUARDED_BY(mutex_);
};

}  // namespace tensord::jit
