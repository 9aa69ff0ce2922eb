#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/jit/importers/format.h"
#include "core/jit/importers/module_tree.h"
#include "core/jit/importers/pt2/input_checks.h"
#include "core/jit/importers/pt2/json.h"
#include "core/jit/importers/pt2/payloads.h"
#include "core/jit/importers/pt2/pytree.h"
#include "core/jit/ir/graph_builder.h"

namespace tensord::jit::pt2 {

// One exported program of an archive, which becomes a method.
class Program {
 public:
  // Checks the schema version. `source` is the prefix of messages; `prefix` ("" or "NAME.") is prepended to the names
  // of the program's tensors.
  Program(Json root, std::string source, std::string prefix);

  const std::string& prefix() const { return prefix_; }
  // Adds the tensors to the tree; `weights` and `constants` have the program's names.
  void add_tensors(const std::map<std::string, Payload>& weights, const std::map<std::string, Payload>& constants,
                   ModuleTree& tree) const;
  // Makes the method "CLASS.NAME" of the tree's class, after all tensors were added.
  std::unique_ptr<Function> make_method(const std::string& name, const ModuleTree& tree, bool records);
  // Signature of the method that was made.
  const MethodSignature& signature() const { return signature_; }

 private:
  using Scope = std::unordered_map<std::string, GraphValue*>;

  const Json& graph() const { return member(member(root_, "graph_module", source_), "graph", source_); }
  const Json& specs(const char* name) const;
  NamedTuples named_tuples() const;
  const Json* meta_of(const char* table, const std::string& name) const;
  TensorSignature describe(const std::string& name, const Json& argument) const;
  std::string tensor_name(const Json& spec, const char* field) const;

  void read_names();
  void add_inputs(Function& function, GraphBuilder& builder, const ModuleTree& tree, Scope& scope);
  void add_user_input(const Json& argument, Function& function, GraphBuilder& builder, Scope& scope);
  void add_checks(GraphBuilder& builder);
  void write_back(GraphBuilder& builder, const ModuleTree& tree, const Scope& scope);
  GraphValue* build_result(GraphBuilder& builder, const Pytree& tree, const std::vector<GraphValue*>& leaves,
                           size_t& next);

  Json root_;
  std::string source_, prefix_;
  Pytree outputs_;
  std::vector<std::string> input_names_, input_paths_;  // by leaf of the program's inputs
  std::vector<std::string> variadic_paths_;             // "kv.0" of what is named kv_0, as guards call parts of *kv
  std::vector<std::string> output_names_;
  std::vector<ProgramInput> inputs_;  // by leaf
  MethodSignature signature_;
};

}  // namespace tensord::jit::pt2
