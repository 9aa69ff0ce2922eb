#pragma once

#include <string>
#include <string_view>

#include "core/jit/tracing/traced.h"
#include "core/ops/registry.h"
#include "core/tensor/tensor.h"

namespace tensord::jit::tracing {

class Call;
class Tracer;

// The file format to which a traced program is written.
class Target {
 public:
  virtual ~Target() = default;

  virtual std::string_view format() const = 0;  // for messages: "ONNX"
  // Whether operators of the file have the same aliasing and in-place semantics as the program's. If so, every operator
  // on tensors is written; otherwise results that are constant over all inputs are folded, and tensors are pure values.
  virtual bool shares_memory() const = 0;
  // Adds a constant tensor under a name derived from the hint, and returns the name. The target keeps `tensor`.
  virtual std::string add_constant(std::string_view hint, const Tensor& tensor) = 0;
  // Adds a tensor of the model as a weight that can be trained, if memory is shared.
  virtual std::string add_weight(const std::string& path, const Tensor& tensor, bool is_parameter) = 0;
  // If memory is shared: writes a tensor of the file to one of the model at the end of the program.
  virtual void write_weight(const std::string& weight, const std::string& value) = 0;
  virtual bool can_write(const ops::Op& op) const = 0;
  // Whether two numbers are known to be equal for every input.
  virtual bool is_same_number(const Traced& one, const Traced& other) const;
  // Writes a branch on an unknown bool: call begin_branch, trace one side, call end_branch with its results, which are
  // tensors; repeat for the other side; then call add_choice, which names the results of the branch.
  virtual void begin_branch() = 0;
  virtual void end_branch(const Tracer& tracer, const std::vector<Traced>& results, const Strings& names) = 0;
  virtual Strings add_choice(const Tracer& tracer, const std::string& condition,
                             const std::vector<Traced>& results) = 0;
  // Writes a call whose results are not constant over all inputs (or whose results are tensors, if memory is shared),
  // and names its results.
  virtual void write(Call& call) = 0;
};

}  // namespace tensord::jit::tracing
