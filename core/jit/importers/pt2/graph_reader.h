#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/jit/importers/pt2/json.h"
#include "core/jit/ir/graph_builder.h"

namespace tensord::jit::pt2 {

// Converts the nodes of a program's graph, and of its subgraphs, to nodes over registered operators.
class GraphReader {
 public:
  using Values = GraphBuilder::Values;
  using Scope = std::unordered_map<std::string, GraphValue*>;  // values by name, for one graph

  // `source` is the prefix of messages. `records`: runs may be recorded by autograd.
  GraphReader(GraphBuilder& builder, std::string source, bool records)
      : builder_(builder), source_(std::move(source)), records_(records) {}

  // Throws Error{kUnimplemented} that names all unsupported operators in the graph and its subgraphs.
  void check_targets(const Json& graph);
  // Adds the nodes of a graph whose inputs are in `scope`, and adds all values to `scope`.
  void add_nodes(const Json& graph, Scope& scope);
  // The value of an argument union. `formal`, if given, is the operator's parameter.
  GraphValue* argument(const Json& argument, const Scope& scope, const ops::Argument* formal = nullptr);

  GraphBuilder& builder() { return builder_; }
  const std::string& source() const { return source_; }

 private:
  friend class HigherOrder;
  friend class Compositions;

  void add_node(const Json& node, Scope& scope);
  bool reads_refused(const Json& node) const;
  void refuse_outputs(const Json& node);
  void add_operator(const std::string& target, const Json& node, Scope& scope);
  void add_function(const std::string& target, const Json& node, Scope& scope);
  GraphValue* number_first(const ops::Op& op, const Json& inputs, const Scope& scope);
  Values bind(const ops::Op& op, const Json& inputs, const Scope& scope);
  void set_location(const Json& node);

  GraphValue* constant_for(const ops::Argument* formal, ops::Value value);
  GraphValue* list_argument(const std::string& kind, const Json& items, const Scope& scope,
                            const ops::Argument* formal);
  GraphValue* symbol(const Json& value, const Scope& scope, const std::string& kind);
  GraphValue* look_up(const std::string& name, const Scope& scope) const;
  // Binds the results to the names of the node's outputs. Lists are unpacked; one result may have several names.
  void name_outputs(const Json& node, std::span<GraphValue* const> results, Scope& scope);
  void name_output(const Json& output, GraphValue* result, Scope& scope);
  GraphValue* as_number(GraphValue* value, const ops::TypePtr& type);

  GraphBuilder& builder_;
  std::string source_;
  bool records_;
  size_t depth_ = 0;  // nesting of subgraphs
  // When all refusals are collected: unsupported operators, and values that could not be computed.
  std::set<std::string> missing_, refused_;
  bool writes_ = true;  // whether some operator writes to a tensor
  bool is_in_no_grad_ = false;
  std::map<std::string, std::shared_ptr<const std::string>> files_;  // source file names, for locations
};

// A node's results.
using Composition = std::vector<GraphValue*> (*)(GraphReader& reader, const Json& node,
                                                 const GraphReader::Scope& scope);
// How to compose a node of other operators, or null. Names are spelled as in the registry: "aten::_to_copy".
Composition find_composition(std::string_view operator_name);
// The registry's name of an operator that has another name there; otherwise the same name.
std::string_view registry_name(std::string_view operator_name);
// "torch.ops.aten.add.Tensor" → "aten::add.Tensor"; "" if it is not an operator.
std::string operator_name(const std::string& target);

// Calls of torch.ops.higher_order, with their subgraphs.
bool is_higher_order(const std::string& target);
void add_higher_order(GraphReader& reader, const std::string& target, const Json& node, GraphReader::Scope& scope);
// Python functions on numbers: _operator.mul, math.ceil, torch.sym_max.
bool is_python_function(const std::string& target);
GraphValue* python_call(GraphBuilder& builder, const std::string& target, std::span<GraphValue* const> arguments);

}  // namespace tensord::jit::pt2
