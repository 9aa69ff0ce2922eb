#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/jit/formats/onnx_export/tracer.h"

namespace tensord::jit::onnx {

// One call of an operator: its arguments and results for both sets of examples, and what writes it.
class Call {
 public:
  Call(Tracer& tracer, const Node& node, const ops::Op& op, std::vector<Traced> arguments, std::vector<Traced> results)
      : tracer_(tracer), node_(node), op_(op), arguments_(std::move(arguments)), results_(std::move(results)) {}

  const ops::Op& op() const { return op_; }
  [[noreturn]] void refuse(const std::string& why) const { Tracer::refuse(node_, why); }

  // Arguments, by their names in the schema.
  bool has(const char* name) const;  // there is such an argument, and it is not None
  const Traced& in(const char* name) const;
  std::string x(const char* name = "self");          // a tensor's name in the file
  const Tensor& t(const char* name = "self") const;  // a tensor of the first set
  const Tensor& t2(const char* name = "self") const;
  std::vector<Traced> list(const char* name) const;
  Dims ints(const char* name) const;  // a list or one int; all of them have to be the same for every input
  int64_t integer(const char* name) const;
  double number(const char* name) const;
  bool flag(const char* name) const;
  std::string text(const char* name) const;
  // A dimension of a tensor of this rank, from 0.
  int64_t dim(const char* name, int64_t rank) const;

  // Results.
  const Tensor& result(size_t i = 0) const { return results_[i].a.to_tensor(); }
  DType dtype(size_t i = 0) const { return result(i).dtype(); }
  std::vector<Traced>& results() { return results_; }
  void set(const std::string& name, size_t i = 0) { tracer_.bind(result(i), name); }
  void set_items(const Strings& names, size_t i = 0);
  void set_number(const std::string& name, size_t i = 0) { results_[i].number = name; }

  // What goes into the file.
  std::string emit(const char* op_type, const Strings& inputs, const Attributes& attributes = {});
  Strings emit_many(const char* op_type, const Strings& inputs, const Attributes& attributes, size_t count);
  std::string constant(const Tensor& tensor) { return tracer_.writer().add_initializer("constant", tensor); }
  std::string int_vector(const Dims& values);
  std::string scalar(double value, DType dtype);  // shape []
  // A number as a tensor of shape []: a constant, or what the file has for it.
  std::string scalar(const Traced& number, DType dtype);
  std::string cast(const std::string& name, DType from, DType to);
  // A tensor or number argument as a tensor of this type.
  std::string operand(const char* name, DType dtype);
  std::string operand(const Traced& value, DType dtype);
  // Numbers, open ones too, as an int64 vector.
  std::string size_vector(std::span<const Traced> numbers);
  std::string shape_of(const std::string& name) { return emit("Shape", {name}); }
  std::string size_at(const std::string& name, int64_t dim);  // shape [1]
  // The sizes of a tensor as numbers: open where they differ between the sets.
  std::vector<Traced> sizes_of(const std::string& name, const Tensor& a, const Tensor& b);
  std::string reshape(const std::string& name, std::span<const Traced> sizes);
  std::string reshape(const std::string& name, const Dims& sizes);
  std::string transpose(const std::string& name, const Dims& order);
  Tracer& tracer() { return tracer_; }

 private:
  Tracer& tracer_;
  const Node& node_;
  const ops::Op& op_;
  std::vector<Traced> arguments_, results_;
};

// How an operator is written; null where ONNX has no form of it here. `name` is "aten::add", of in-place forms too.
using Handler = void (*)(Call& call);
Handler find_handler(std::string_view name);

struct HandlerRow {
  const char* name;
  Handler handler;
};
// The table, by family.
std::span<const HandlerRow> pointwise_rows();
std::span<const HandlerRow> reduce_rows();
std::span<const HandlerRow> shape_rows();
std::span<const HandlerRow> index_rows();
std::span<const HandlerRow> layer_rows();
std::span<const HandlerRow> recurrent_rows();
std::span<const HandlerRow> number_rows();
// Of operators that take and give numbers alone.
void write_number(Call& call);

}  // namespace tensord::jit::onnx
