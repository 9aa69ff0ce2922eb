#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/jit/tracing/tracer.h"

namespace tensord::jit::tracing {

// One call of an operator, with its arguments and results for both sets of examples.
class Call {
 public:
  Call(Tracer& tracer, const Node& node, const ops::Op& op, std::vector<Traced> arguments, std::vector<Traced> results)
      : tracer_(tracer), node_(node), op_(op), arguments_(std::move(arguments)), results_(std::move(results)) {}

  const ops::Op& op() const { return op_; }
  const Node& node() const { return node_; }
  Tracer& tracer() const { return tracer_; }
  [[noreturn]] void refuse(const std::string& why) const { tracer_.refuse(node_, why); }
  [[noreturn]] void refuse_form() const;

  // Arguments, looked up by name in the schema or by position.
  const std::vector<Traced>& arguments() const { return arguments_; }
  const Traced& first() const;
  bool has(const char* name) const;  // whether the argument exists and is not None
  const Traced& in(const char* name) const;
  const Tensor& t(const char* name = "self") const;  // the tensor in the first set
  const Tensor& t2(const char* name = "self") const;
  std::vector<Traced> list(const char* name) const;
  // The value of an argument that is constant over all inputs; throws if it is not.
  const ops::Value& fixed(const char* name, const Traced& value) const;
  Dims ints(const char* name) const;                    // a list or one int, constant over all inputs
  std::vector<double> numbers(const char* name) const;  // the same for floats
  int64_t integer(const char* name) const;
  double number(const char* name) const;
  bool flag(const char* name) const;
  std::string text(const char* name) const;
  // A dimension argument for a tensor of this rank, normalized to start at 0.
  int64_t dim(const char* name, int64_t rank) const;

  // Results. Some operators on tensors have overloads on scalars, which cannot be exported.
  const Tensor& result(size_t i = 0) const {
    if (!results_[i].a.is_strided()) refuse_form();
    return results_[i].a.to_tensor();
  }
  DType dtype(size_t i = 0) const { return result(i).dtype(); }
  std::vector<Traced>& results() { return results_; }
  void set(const std::string& name, size_t i = 0) { tracer_.bind(results_[i], name); }
  void set_items(const Strings& names, size_t i = 0);
  void set_number(const std::string& name, size_t i = 0) { results_[i].number = name; }

 protected:
  Tracer& tracer_;
  const Node& node_;
  const ops::Op& op_;
  std::vector<Traced> arguments_, results_;
};

// Runs an operator whose first argument is a list or dict; nothing is written to the file. Returns false for any other
// call.
bool run_container_call(Call& call);

}  // namespace tensord::jit::tracing
