#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/jit/frontend/compilation_unit.h"
#include "core/jit/ir/function.h"

namespace tensord::jit::onnx {

// ONNX's operators as compositions of the registry's, written in TorchScript in operators/*.py. Function NAME_VERSION
// is operator NAME as it is since opset VERSION; those of other domains than ai.onnx have a prefix. There is one
// library for all models. Thread-safe.
class OperatorLibrary {
 public:
  static const OperatorLibrary& instance();

  // The newest version that is not newer than `opset`; null when there is none.
  const Function* find(const std::string& domain, const std::string& op_type, int64_t opset) const;
  // A helper: "control._int_list". It is there.
  const Function& helper(const std::string& name) const;
  // What a function of the library calls.
  const Function* find_function(const std::string& qualified_name) const {
    return unit_->find_function(qualified_name);
  }
  // Whether any version of the operator is there.
  bool knows(const std::string& domain, const std::string& op_type) const;
  // The newest opset of a domain whose operators are all known in meaning; 0: the domain is unknown.
  static int64_t newest_opset(const std::string& domain);
  // Qualified names of all functions.
  std::vector<std::string> function_names() const { return unit_->function_names(); }

 private:
  OperatorLibrary();
  std::unique_ptr<CompilationUnit> unit_;
  // By name with the domain's prefix: opset version → qualified name.
  std::map<std::string, std::map<int64_t, std::string>> versions_;
};

// A function that is true where LoadChecks goes through it; it is not put into graphs.
inline constexpr std::string_view kAtLoad = "__torch__.onnx.control._at_load";

// The files of operators/, put into the program when it is built.
std::vector<SourceFile> operator_sources();

}  // namespace tensord::jit::onnx
