#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/jit/formats/pt2/json.h"
#include "core/jit/ir/graph_builder.h"

namespace tensord::jit::pt2 {

// Turns the nodes of a program's graph, and of the graphs inside of it, into nodes over the registry's operators.
class GraphReader {
 public:
  using Values = GraphBuilder::Values;
  using Scope = std::unordered_map<std::string, GraphValue*>;  // by the names of one graph

  // `source` is what messages start with. `records` says that runs may be recorded by autograd.
  GraphReader(GraphBuilder& builder, std::string source, bool records)
      : builder_(builder), source_(std::move(source)), records_(records) {}

  // Throws Error{kUnimplemented} that names every operator of the graph, and of those inside of it, that is not there.
  void check_targets(const Json& graph);
  // Adds the nodes of a graph whose inputs are in `scope`; then that has all of its values.
  void add_nodes(const Json& graph, Scope& scope);
  // The values that arguments of a union stand for. `formal`, when given, is the operator's parameter.
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
  // Gives the results the names that the node's outputs say. Lists are taken apart; one result may be many names.
  void name_outputs(const Json& node, std::span<GraphValue* const> results, Scope& scope);
  void name_output(const Json& output, GraphValue* result, Scope& scope);
  GraphValue* as_number(GraphValue* value, const ops::TypePtr& type);

  GraphBuilder& builder_;
  std::string source_;
  bool records_;
  size_t depth_ = 0;  // of graphs in graphs
  // Where all refusals are collected: operators that are not there, and values that could not be made.
  std::set<std::string> missing_, refused_;
  bool writes_ = true;  // some operator writes to a tensor
  bool is_in_no_grad_ = false;
  std::map<std::string, std::shared_ptr<const std::string>> files_;  // names of source files, for locations
};

// A node's result, or results.
using Composition = std::vector<GraphValue*> (*)(GraphReader& reader, const Json& node,
                                                 const GraphReader::Scope& scope);
// How a node is written with other operators, or null. Names as the registry spells them: "aten::_to_copy".
Composition find_composition(std::string_view operator_name);
// The registry's name of an operator that is there under another one; the same name for all others.
std::string_view registry_name(std::string_view operator_name);
// "torch.ops.aten.add.Tensor" → "aten::add.Tensor"; "" when it is no operator.
std::string operator_name(const std::string& target);

// Bodies and calls of torch.ops.higher_order.
bool is_higher_order(const std::string& target);
void add_higher_order(GraphReader& reader, const std::string& target, const Json& node, GraphReader::Scope& scope);
// Functions of Python over numbers: _operator.mul, math.ceil, torch.sym_max.
bool is_python_function(const std::string& target);
GraphValue* python_call(GraphBuilder& builder, const std::string& target, std::span<GraphValue* const> arguments);

}  // namespace tensord::jit::pt2
