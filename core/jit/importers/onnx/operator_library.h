#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/jit/frontend/compilation_unit.h"
#include "core/jit/ir/function.h"

namespace tensord::jit::onnx {

// ONNX's operators as compositions of registered operators, written in TorchScript in operators/*.py. Function
// NAME_VERSION is operator NAME as defined since opset VERSION; domains other than ai.onnx have a prefix. All models
// share one library. Thread-safe.
class OperatorLibrary {
 public:
  static const OperatorLibrary& instance();

  // The newest version up to `opset`; null if there is none.
  const Function* find(const std::string& domain, const std::string& op_type, int64_t opset) const;
  // A helper such as "control._int_list". REQUIRES: it exists.
  const Function& helper(const std::string& name) const;
  // A function by its qualified name, for calls within the library.
  const Function* find_function(const std::string& qualified_name) const {
    return unit_->find_function(qualified_name);
  }
  // Whether any version of the operator exists.
  bool knows(const std::string& domain, const std::string& op_type) const;
  // The newest opset of a domain for which all operators are implemented; 0 for an unknown domain.
  static int64_t newest_opset(const std::string& domain);
  // Qualified names of all functions.
  std::vector<std::string> function_names() const { return unit_->function_names(); }

 private:
  OperatorLibrary();
  std::unique_ptr<CompilationUnit> unit_;
  // By name with the domain's prefix: opset version → qualified name.
  std::map<std::string, std::map<int64_t, std::string>> versions_;
};

// A function that returns true in LoadChecks only; graphs do not contain it.
inline constexpr std::string_view kAtLoad = "__torch__.onnx.control._at_load";

// The files of operators/, embedded at build time.
std::vector<SourceFile> operator_sources();

}  // namespace tensord::jit::onnx
