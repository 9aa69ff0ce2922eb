#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/jit/formats/export_tracing/call.h"
#include "core/jit/formats/export_tracing/export_argument.h"
#include "core/jit/formats/pt2/json.h"
#include "core/jit/formats/unique_names.h"

namespace tensord::jit::pt2 {

using tracing::Call;
using tracing::Strings;
using tracing::Traced;

// A size, or another number of a shape, in both sets of examples, and what it is as SymPy writes it where it is open.
struct OpenSize {
  int64_t a = 0, b = 0;
  std::string expression;
  bool is_open = false;
  std::vector<std::optional<int64_t>> probes = {};  // what it is in each probe, as far as that is known
};

// A size of a tensor, still without an expression.
OpenSize open_size(const tracing::Tracer& tracer, const Traced& tensor, int64_t dim);
// An expression over `known` that gives all values that are known, as simple as there is one; "" if none is found. Of
// a size of which no probe is known, as where it hangs on data, nothing is found.
std::string find_expression(const OpenSize& wanted, const std::vector<OpenSize>& known);
std::string symbol_expression(const std::string& symbol);

// Collects an exported program and writes it as a file. Of a number that is not the same for every input the file has a
// symbolic value, whose name is Traced::number. Sizes are symbols of their own unless it is plain what they are:
// PyTorch works them out again from those of the inputs.
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

  // Gives the name that the graph has for it. Sizes that differ are open.
  std::string add_input(const tracing::ExportArgument& input);
  // `argument`: as as_argument has it.
  void add_output(const Json& argument) { outputs_.push_back(argument); }
  // `in_spec` and `out_spec`: pytrees as text. `examples`: a tuple of the inputs and an empty dict.
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
  // Says of a tensor what it is; `known`: sizes that its own may come from.
  void describe(const tracing::Tracer& tracer, const std::string& name, const Traced& tensor,
                const std::vector<OpenSize>& known);
  void describe_fixed(const std::string& name, const Tensor& tensor);
  Json size_json(const OpenSize& size) const;
  Json strides_json(std::vector<OpenSize> strides, const std::vector<OpenSize>& sizes);
  std::vector<OpenSize> known_sizes(Call& call);
  void add_node(std::string_view hint, const std::string& target, Json inputs, Json outputs, Strings names,
                bool writes);

  // An argument of a call; `formal` is what the schema says of it.
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
  // elements.cpp
  using Elements = std::vector<Traced>;
  std::optional<Elements> elements_of(Call& call, const Traced& tensor) const;
  void set_elements(const Call& call, const Traced& tensor, Elements items);
  void forget_elements(const Tensor& written);
  void follow_elements(Call& call);
  void follow_moves(Call& call);
  void follow_pointwise(Call& call);
  void follow_reduction(Call& call);
  std::optional<Elements> broadcast_elements(Call& call, const Traced& operand, const Tensor& result) const;
  // The number that an operator of numbers gives, which is a or b for the examples.
  Traced element_of(Call& call, std::string_view op, const std::vector<Traced>& operands, int64_t a, int64_t b);
  // bounds.cpp: what an int is at least, for every input; and a comparison of two, where it is known for every input.
  int64_t least(const Traced& number) const;
  std::optional<bool> contains(const Traced& list, const Traced& number) const;
  std::optional<bool> compare(std::string_view op, const Traced& x, const Traced& y) const;
  std::optional<bool> compare_bounds(std::string_view op, const Traced& x, const Traced& y) const;
  // The value of a Python function of numbers; "" where there is none.
  std::string python_number(Call& call, std::string_view op, const std::vector<Traced>& operands, const Traced& result);
  Traced size_at(Call& call, const Traced& tensor, int64_t dim);
  std::string size_of(const std::string& tensor, int64_t dim);
  std::string declare_number(const std::string& name, const Traced& number, std::string expression);

  // The nodes that the outputs need, or that write; `used`: the names of what they read.
  static std::vector<Node> live_nodes(const std::vector<Node>& nodes, const std::vector<Json>& outputs,
                                      std::set<std::string>& used);
  // branches.cpp
  struct Way {
    std::vector<Node> nodes;
    std::vector<Json> outputs;
    Strings names;                // of the outputs
    std::set<std::string> reads;  // names from outside
  };
  Json way_graph(const std::string& name, const Way& way, const Strings& operands) const;
  std::string condition_of(Call& call);
  Json specs_json(Json& inputs, const std::vector<Stored>& constants) const;

  // Python's keywords, and what the code that PyTorch makes of a program calls by these names.
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
  std::vector<Outside> outside_;  // while a way is written, the innermost last
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
  std::unordered_map<const TensorImpl*, FollowedTensor> elements_;  // of the first example
  std::map<std::pair<std::string, int64_t>, std::string> sizes_;    // numbers by tensor and dimension
  std::map<std::string, OpenSize> named_sizes_;                     // of inputs
  int64_t symbol_count_ = 0;
};

// Whether PyTorch has this overload among the operators of exported programs.
bool is_program_operator(const ops::Op& op);

}  // namespace tensord::jit::pt2
