#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/jit/importers/pt2/expression.h"
#include "core/jit/importers/pt2/json.h"
#include "core/jit/ir/graph_builder.h"

namespace tensord::jit::pt2 {

// An argument of the program.
struct ProgramInput {
  std::string name;                // as requests call it: "x", "d.a"
  std::vector<std::string> paths;  // as guards call it, keys joined by '.': "d.a", "args.1.a", "flat_args.1"
  GraphValue* value = nullptr;     // a constant if the program was exported for a single value
  const Json* meta = nullptr;      // for a tensor: its entry in tensor_values
  const Json* symbol = nullptr;    // for an int: its entry in sym_int_values
};

// Adds checks to the graph that refuse inputs for which the program was not exported: other dtypes and fixed sizes,
// sizes that must be equal but are not, ranges, guards. Checks on static sizes are folded away.
class InputChecks {
 public:
  // `source` is the prefix of load errors.
  InputChecks(GraphBuilder& builder, std::vector<ProgramInput> inputs, const std::string& source)
      : builder_(builder), inputs_(std::move(inputs)), source_(source) {}

  void add_shapes();
  void add_ranges(const Json& range_constraints);
  void add_guards(const Json& guards);

 private:
  struct Size {
    const ProgramInput* input;
    int64_t dim;  // -1: the int itself
    GraphValue* value;
    Expression expression;
  };

  void check_tensor(const ProgramInput& input);
  void add_size(const ProgramInput& input, int64_t dim, GraphValue* value, const Json& size);
  void bind_symbols();
  bool solve(const Size& size);
  void refuse_unless(GraphValue* condition, const std::string& message, GraphValue* actual = nullptr);
  GraphValue* emit(const Expression& expression);
  GraphValue* emit_source(const Expression& expression);
  static std::string describe(const Size& size);

  GraphBuilder& builder_;
  std::vector<ProgramInput> inputs_;
  const std::string& source_;
  std::vector<Size> sizes_;
  std::map<std::string, const Size*> bound_;  // symbols that equal one input's size
  std::map<std::string, GraphValue*> symbols_;
};

}  // namespace tensord::jit::pt2
