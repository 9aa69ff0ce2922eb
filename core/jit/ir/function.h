#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/jit/ir/graph.h"
#include "core/ops/schema.h"

namespace tensord::jit {

// A file of an archive's code folder: its name ("code/__torch__/m.py") and text.
struct SourceFile {
  std::string name;
  std::string text;
};

// A compiled function or method: its signature, and its graph as the frontend made it (no inlining, no optimization).
// Immutable and shared by all callers.
struct Function {
  std::string name;    // qualified: "__torch__.M.forward"
  ops::Schema schema;  // arguments with names, types and defaults; methods start with self
  std::unique_ptr<Graph> graph;
};

// The functions, methods and types that scripts of one archive can use. The frontend implements it and compiles each
// function on the first request. Thread-safe.
class FunctionLibrary {
 public:
  virtual ~FunctionLibrary() = default;
  // Returns null if there is no such function. Throws Error with file, line and caret if it does not compile.
  virtual const Function* find_function(const std::string& qualified_name) const = 0;
  virtual const Function* find_method(const std::string& class_name, const std::string& method) const = 0;
  // Null if there is no such type.
  virtual ops::TypePtr find_type(const std::string& qualified_name) const = 0;
  virtual std::vector<std::string> method_names(const std::string& class_name) const = 0;
};

}  // namespace tensord::jit
