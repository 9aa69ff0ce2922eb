#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/jit/importers/pt2/json.h"
#include "core/jit/importers/unique_names.h"
#include "core/jit/tracing/call.h"
#include "core/jit/tracing/export_argument.h"

namespace tensord::jit::pt2 {

using tracing::Call;
using tracing::Strings;
using tracing::Traced;

// A size, or another number derived from shapes, in both sets of examples, and its SymPy expression if it is dynamic.
struct OpenSize {
  int64_t a = 0, b = 0;
  std::string expression;
  bool is_open = false;
  std::vector<std::optional<int64_t>> probes = {};  // its value in each probe, if known
};

// A size of a tensor, without an expression yet.
OpenSize open_size(const tracing::Tracer& tracer, const Traced& tensor, int64_t dim);
// The simplest expression over `known` that gives all known values; "" if none is found. If no probe is known, for
// example because the size depends on data, none is found.
std::string find_expression(const OpenSize& wanted, const std::vector<OpenSize>& known);
std::string symbol_expression(const std::string& symbol);

// Collects an exported program and writes it to a file. A dynamic number is a symbolic value in the file, with the name
// Traced::number. Sizes become symbols of their own unless their expression is obvious: PyTorch derives them again from
// the inputs' sizes.
class ProgramWriter : public tracing::Target {
 public:
  std::string_view format() const override { return "exported programs"; }
  bool shares_memory() const override { return true; }
  std::string add_constant(std::string_view hint, const Tensor& tensor) override;
  std::string add_weight(const std::string& path, const Tensor& tensor, bool is_parameter) override;
  void write_weight(const std::string& weight, const std::string& value) override;
  bool can_write(const ops::Op& op) const override;
  void write(Call& call) override;
  bool is_same_number(const Traced& one, const Traced& other) const override;
  void begin_branch() override;
  void end_branch(const tracing::Tracer& tracer, const std::vector<Traced>& results, const Strings& names) override;
  Strings add_choice(const tracing::Tracer& tracer, const std::string& condition,
                     const std::vector<Traced>& results) override;

  // Returns the name in the graph. Sizes that differ between the examples are dynamic.
  std::string add_input(const tracing::ExportArgument& input);
  // `argument` has the format of as_argument.
  void add_output(const Json& argument) { outputs_.push_back(argument); }
  // `in_spec` and `out_spec` are serialized pytrees. `examples` is a tuple of the inputs and an empty dict.
  void write_file(const std::string& path, const std::string& in_spec, const std::string& out_spec,
                  const ops::Value& examples) const;

 private:
  struct Node {
    Json json;
    Strings outputs;
    bool writes = false;
  };
  struct Stored {
    std::string name, path;
    Tensor tensor;
    bool is_parameter = false;
  };

  std::string new_name(std::string_view hint);
  std::string new_symbol(int64_t min = 0);
  // Records a tensor's metadata; its sizes may be expressed with `known`.
  void describe(const tracing::Tracer& tracer, const std::string& name, const Traced& tensor,
                const std::vector<OpenSize>& known);
  void describe_fixed(const std::string& name, const Tensor& tensor);
  Json size_json(const OpenSize& size) const;
  Json strides_json(std::vector<OpenSize> strides, const std::vector<OpenSize>& sizes);
  std::vector<OpenSize> known_sizes(Call& call);
  void add_node(std::string_view hint, const std::string& target, Json inputs, Json outputs, Strings names,
                bool writes);

  // An argument of a call; `formal` is its parameter in the schema.
  Json as_argument(Call& call, const ops::Argument& formal, const Traced& value);
  Json list_argument(Call& call, const ops::Argument& formal, const Traced& value);
  Json number_argument(Call& call, const Traced& number) const;
  void write_operator(Call& call, const std::string& target);
  void write_conversion(Call& call);
  bool write_sizes(Call& call);
  void write_number(Call& call);
  void write_tensor_of_numbers(Call& call);
  void write_list_of_sizes(Call& call);
  std::string add_scalar_tensor(Call& call, const Traced& number, const Traced& like);
  // In elements.cpp.
  using Elements = std::vector<Traced>;
  std::optional<Elements> elements_of(Call& call, const Traced& tensor) const;
  void set_elements(const Call& call, const Traced& tensor, Elements items);
  void forget_elements(const Tensor& written);
  void follow_elements(Call& call);
  void follow_moves(Call& call);
  void follow_pointwise(Call& call);
  void follow_reduction(Call& call);
  std::optional<Elements> broadcast_elements(Call& call, const Traced& operand, const Tensor& result) const;
  // The result of an operator on numbers, which is a and b in the examples.
  Traced element_of(Call& call, std::string_view op, const std::vector<Traced>& operands, int64_t a, int64_t b);
  // In bounds.cpp: the lower bound of an int over all inputs; and the result of a comparison, if it is constant over
  // all inputs.
  int64_t least(const Traced& number) const;
  std::optional<bool> contains(const Traced& list, const Traced& number) const;
  std::optional<bool> compare(std::string_view op, const Traced& x, const Traced& y) const;
  std::optional<bool> compare_bounds(std::string_view op, const Traced& x, const Traced& y) const;
  // The name of a call of a Python function on numbers; "" if there is none.
  std::string python_number(Call& call, std::string_view op, const std::vector<Traced>& operands, const Traced& result);
  Traced size_at(Call& call, const Traced& tensor, int64_t dim);
  std::string size_of(const std::string& tensor, int64_t dim);
  std::string declare_number(const std::string& name, const Traced& number, std::string expression);

  // The nodes that outputs depend on, or that have side effects; `used` receives the names that they read.
  static std::vector<Node> live_nodes(const std::vector<Node>& nodes, const std::vector<Json>& outputs,
                                      std::set<std::string>& used);
  // In branches.cpp.
  struct Way {
    std::vector<Node> nodes;
    std::vector<Json> outputs;
    Strings names;                // of the outputs
    std::set<std::string> reads;  // names of outer values
  };
  Json way_graph(const std::string& name, const Way& way, const Strings& operands) const;
  std::string condition_of(Call& call);
  Json specs_json(Json& inputs, const std::vector<Stored>& constants) const;

  // Python's keywords, and names that the code generated by PyTorch uses.
  UniqueNames names_taken_{"False", "None",   "True",   "and",      "as",       "assert", "async",
                           "await", "break",  "class",  "continue", "def",      "del",    "elif",
                           "else",  "except", "for",    "from",     "global",   "if",     "import",
                           "in",    "is",     "lambda", "nonlocal", "not",      "or",     "pass",
                           "raise", "return", "try",    "while",    "with",     "yield",  "self",
                           "torch", "device", "inf",    "nan",      "NoneType", "pytree", "fx_pytree"};
  std::vector<Node> nodes_;
  struct Outside {
    std::vector<Node> nodes;
    std::map<std::pair<std::string, int64_t>, std::string> sizes;
  };
  std::vector<Outside> outside_;  // while subgraphs are written, innermost last
  std::vector<Way> ways_;
  std::vector<Stored> weights_, constants_;
  std::vector<std::string> inputs_;
  std::vector<Json> outputs_;
  Json tensor_values_ = Json::object(), int_values_ = Json::object(), float_values_ = Json::object();
  Json ranges_ = Json::object();
  std::map<std::string, std::string> expressions_;       // of numbers, by name
  std::map<std::string, std::vector<OpenSize>> shapes_;  // of tensors, by name
  struct FollowedTensor {
    Tensor tensor;
    Elements items;
  };
  std::unordered_map<const TensorImpl*, FollowedTensor> elements_;  // for the first example
  std::map<std::pair<std::string, int64_t>, std::string> sizes_;    // numbers by tensor and dimension
  std::map<std::string, OpenSize> named_sizes_;                     // of inputs
  int64_t symbol_count_ = 0;
};

// Whether PyTorch has this overload among the operators of exported programs.
bool is_program_operator(const ops::Op& op);

}  // namespace tensord::jit::pt2
