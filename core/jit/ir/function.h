#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/jit/ir/graph.h"
#include "core/ops/schema.h"

namespace tensord::jit {

// One file of an archive's code folder: "code/__torch__/m.py" and its text.
struct SourceFile {
  std::string name;
  std::string text;
};

// A compiled function or method: its signature and its graph as the front end made it (calls
// not inlined, nothing optimized). Immutable once made; shared by all who call it.
struct Function {
  std::string name;    // qualified: "__torch__.M.forward"
  ops::Schema schema;  // arguments with names, types and defaults; methods start with self
  std::unique_ptr<Graph> graph;
};

// Everything that can be called or named from scripts of one archive. The front end
// implements it and compiles each function when it is first asked for; thread-safe.
class FunctionLibrary {
 public:
  virtual ~FunctionLibrary() = default;
  // Null when there is none; throws Error with file, line and caret when it does not compile.
  virtual const Function* find_function(const std::string& qualified_name) const = 0;
  virtual const Function* find_method(const std::string& class_name, const std::string& method) const = 0;
  // Null when there is none.
  virtual ops::TypePtr find_type(const std::string& qualified_name) const = 0;
  virtual std::vector<std::string> method_names(const std::string& class_name) const = 0;
};

}  // namespace tensord::jit
