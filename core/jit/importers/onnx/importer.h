#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/jit/importers/onnx/body_copier.h"
#include "core/jit/importers/onnx/load_checks.h"
#include "core/jit/importers/onnx/operator_library.h"
#include "core/jit/importers/onnx/proto.h"
#include "core/jit/importers/onnx/result_shapes.h"
#include "core/jit/importers/onnx/tensors.h"
#include "core/jit/ir/graph_builder.h"

namespace tensord::jit::onnx {

// A node's attributes by name; references to a function's attributes are resolved.
using Attributes = std::map<std::string, const AttributeProto*>;

// Appends GraphProtos to an IR graph. An operator becomes the body of its library function, with the source location of
// the node; model-local functions and loop bodies are inlined. One importer per model.
class Importer {
 public:
  // `file` is the model's name in messages. All arguments must outlive the importer.
  Importer(const ModelProto& model, std::string file, TensorReader& tensors, Graph& graph);

  GraphBuilder& builder() { return builder_; }
  // Defines a name of the main graph.
  void define(const std::string& name, GraphValue* value);
  // Marks a value with 4-bit elements, stored as int8: only operators that support them may use it.
  void mark_four_bits(const GraphValue* value, int64_t data_type) { four_bits_.emplace(value, data_type); }
  // Throws Error{kUnimplemented} for such a value.
  void check_element_type(const GraphValue* value) const;
  // Declares the type of an input, as the file describes it.
  void declare(const GraphValue* value, const TypeProto& type) { checks_.declare(value, type); }
  // Declares that the value is this weight in every run.
  void set_weight(const GraphValue* value, const Tensor& weight) { weights_.emplace(value, weight); }
  // `given`, or `otherwise` if a run does not provide it.
  GraphValue* given_or(GraphValue* given, GraphValue* otherwise) {
    return helper("control._given_or", {given, otherwise});
  }
  // Imports the nodes of the main graph, whose initializers and inputs are already defined.
  void run();
  // The value of a name of the main graph. Throws Error{kDataLoss} if it is undefined.
  GraphValue* value(const std::string& name);

 private:
  using Values = std::vector<GraphValue*>;
  struct Scope {
    std::unordered_map<std::string, GraphValue*> values;  // null: an omitted input of a function
    const Scope* outer = nullptr;                         // null for the main graph and for functions
  };
  class InScope;

  // Graphs and nodes (importer.cpp).
  void nodes(const std::vector<NodeProto>& nodes);
  void node(const NodeProto& node);
  // Does it; what is refused meanwhile is thrown as the node's, or collected (jit/ir/refusals.h): then false.
  bool attempt(const NodeProto& node, const std::function<void()>& action);
  void dispatch(const NodeProto& node);
  // These three throw Error{kUnimplemented}.
  [[noreturn]] void refuse_operator(const NodeProto& node, const std::string& why) const;
  void check_opset(const NodeProto& node) const;
  const Function& library_function(const NodeProto& node) const;
  void define_outputs(const NodeProto& node, const Values& results);
  // Records ranks for the following nodes, where results are not known otherwise.
  void note_shapes(const NodeProto& node, const Values& results);
  GraphValue* const* find(const std::string& name) const;
  GraphValue* constant_of(const TensorProto& tensor);
  // Returns null for "".
  GraphValue* input(const NodeProto& node, size_t i);
  Values inputs(const NodeProto& node);
  Attributes attributes(const NodeProto& node) const;
  const FunctionProto* local_function(const NodeProto& node) const;
  Values call_local(const FunctionProto& function, const NodeProto& node);
  int64_t opset(const std::string& domain) const;
  void set_place(const NodeProto& node);
  // Inlines the graph of an attribute into the current block with these inputs; returns the values of its outputs.
  Values subgraph(const GraphProto& graph, const Values& arguments);

  // Nodes that read what refused ones would have made (refused_nodes.cpp).
  bool reads_refused(const NodeProto& node) const;
  void check_without_inputs(const NodeProto& node);
  void check_without_inputs(const std::vector<NodeProto>& nodes);

  // Calls of the library (call.cpp).
  Values call_operator(const Function& function, const NodeProto& node);
  Values bind(const Function& function, const NodeProto& node);
  GraphValue* attribute_value(std::string_view op, const std::string& name, const AttributeProto& attribute,
                              const ops::Type& type);
  // Converts an input to the function's parameter type: numbers and lists are read from the tensor.
  GraphValue* converted(GraphValue* value, const ops::TypePtr& type, const std::string& parameter);
  GraphValue* number(GraphValue* tensor, ops::TypeKind kind);
  GraphValue* numbers(GraphValue* tensor, ops::TypeKind kind);
  GraphValue* helper(const std::string& name, std::initializer_list<GraphValue*> arguments);
  GraphValue* inline_function(const Function& function, const Values& arguments);
  Tensor tensor_of(const GraphValue* value) const;

  // Operators that are not library functions (control.cpp).
  bool special(const NodeProto& node);
  struct Special;
  // Null for other nodes. Throws for attributes that it does not have.
  const Special* find_special(const NodeProto& node) const;
  void constant(const NodeProto& node);
  void identity(const NodeProto& node);
  void optional(const NodeProto& node);
  void optional_has_element(const NodeProto& node);
  void optional_get_element(const NodeProto& node);
  void if_node(const NodeProto& node);
  void loop(const NodeProto& node);
  void scan(const NodeProto& node);
  void sequence_map(const NodeProto& node);
  void flex_attention(const NodeProto& node);
  const GraphProto& graph_attribute(const NodeProto& node, const char* name) const;
  // A loop that `body` fills: it gets the number of the round and the carried values, and gives back, by reference,
  // what they become; its result is whether to go on. Gives back the carried values at the end.
  struct LoopResults {
    Values values;
    bool has_rounds = false;  // in every run
    bool is_steady = false;   // what is known of values in the body holds in every round
  };
  template <class Body>
  LoopResults counted_loop(GraphValue* trips, GraphValue* condition, const Values& carried,
                           const std::vector<ops::TypePtr>& types, Body body);
  // What the rounds of a loop give one after the other.
  struct ScanOutput {
    GraphValue* list;
    std::optional<ShapeOfResult> item = {};  // that a round appended; its sizes may differ by round
  };
  ScanOutput scan_output();
  void append(ScanOutput& output, GraphValue* item);
  GraphValue* stacked(const LoopResults& loop, const ScanOutput& output, const ValueInfoProto& item, int64_t axis,
                      bool is_reversed);

  const ModelProto& model_;
  const std::string file_;
  TensorReader& tensors_;
  const OperatorLibrary& library_;
  GraphBuilder builder_;
  BodyCopier copier_;
  LoadChecks checks_;
  std::unordered_map<std::string, const TypeProto*> value_infos_;  // of the main graph
  std::unordered_map<const GraphValue*, Tensor> weights_;
  std::unordered_map<const GraphValue*, int64_t> four_bits_;  // their data_type
  SourceLocation place_;                                      // of the node being imported
  std::map<std::string, const FunctionProto*> functions_;     // by domain, name and overload
  std::set<std::string> refused_;  // values of nodes that were refused, where all refusals are collected
  std::set<const FunctionProto*> checked_without_inputs_;
  Scope main_;
  Scope* scope_ = &main_;
  const OpsetImports* opsets_;
  const Attributes* function_attributes_ = nullptr;
  std::vector<const FunctionProto*> calls_;  // those being inlined
  int depth_ = 0;
  size_t steps_ = 0;
  size_t node_number_ = 0;
};

// "MaxPool" of __torch__.onnx.pool.MaxPool_1.
std::string_view operator_of(const Function& function);
// The type of values that a TypeProto describes; with `checks`, throws for element types that no tensor here has.
ops::TypePtr to_type(const TypeProto& proto, const std::string& what, bool checks);
// Converts a name to the form of graph values.
std::string plain_name(std::string_view name);

}  // namespace tensord::jit::onnx
