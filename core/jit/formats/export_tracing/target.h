#pragma once

#include <string>
#include <string_view>

#include "core/jit/formats/export_tracing/traced.h"
#include "core/ops/registry.h"
#include "core/tensor/tensor.h"

namespace tensord::jit::tracing {

class Call;
class Tracer;

// The file that a traced program goes into.
class Target {
 public:
  virtual ~Target() = default;

  virtual std::string_view format() const = 0;  // for messages: "ONNX"
  // Whether operators of the file write to memory and share it as those of the program do. Then every operator on
  // tensors goes into the file; else what is the same for every input is worked out, and tensors are values.
  virtual bool shares_memory() const = 0;
  // Puts a tensor into the file, by a name like the hint, and gives the name. `tensor` is the target's to keep.
  virtual std::string add_constant(std::string_view hint, const Tensor& tensor) = 0;
  // A tensor of the model, where memory is shared: it stays one that can be trained.
  virtual std::string add_weight(const std::string& path, const Tensor& tensor, bool is_parameter) = 0;
  // Where memory is shared: writes a tensor of the file into one of the model, at the end of the program.
  virtual void write_weight(const std::string& weight, const std::string& value) = 0;
  virtual bool can_write(const ops::Op& op) const = 0;
  // Whether two numbers are the same for every input, as far as the file says.
  virtual bool is_same_number(const Traced& one, const Traced& other) const;
  // The file goes one of two ways by a bool that is not known: begin_branch, what a way computes, end_branch
  // with its results, which are tensors; the same for the other way; add_choice, which names the results of both.
  virtual void begin_branch() = 0;
  virtual void end_branch(const Tracer& tracer, const std::vector<Traced>& results, const Strings& names) = 0;
  virtual Strings add_choice(const Tracer& tracer, const std::string& condition,
                             const std::vector<Traced>& results) = 0;
  // Writes a call whose arguments are not the same for every input, or that gives tensors where memory is shared, and
  // names its results.
  virtual void write(Call& call) = 0;
};

}  // namespace tensord::jit::tracing
