#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/jit/exporters/onnx/writer.h"
#include "core/jit/tracing/call.h"

namespace tensord::jit::onnx {

using tracing::Traced;
using tracing::Tracer;

// A call written as ONNX. A dynamic number is an int64, float or bool tensor of shape [1] in the file.
class Call : public tracing::Call {
 public:
  Call(tracing::Call&& call, ModelWriter& writer) : tracing::Call(std::move(call)), writer_(writer) {}

  // The name of a tensor argument in the file.
  std::string x(const char* name = "self") {
    if (!in(name).a.is_strided()) refuse_form();
    return tracer_.name_of(in(name));
  }

  // Writes nodes and returns the names of their outputs.
  std::string emit(const char* op_type, const Strings& inputs, const Attributes& attributes = {});
  Strings emit_many(const char* op_type, const Strings& inputs, const Attributes& attributes, size_t count);
  std::string constant(const Tensor& tensor) { return writer_.add_initializer("constant", tensor); }
  std::string int_vector(const Dims& values);
  std::string scalar(double value, DType dtype);  // shape []
  // A number as a tensor of shape []: a constant, or the tensor in the file.
  std::string scalar(const Traced& number, DType dtype);
  std::string cast(const std::string& name, DType from, DType to);
  // A tensor or scalar argument as a tensor of this type.
  std::string operand(const char* name, DType dtype);
  std::string operand(const Traced& value, DType dtype);
  // Numbers, including dynamic ones, as an int64 vector.
  std::string size_vector(std::span<const Traced> numbers);
  std::string shape_of(const std::string& name) { return emit("Shape", {name}); }
  std::string size_at(const std::string& name, int64_t dim);  // a tensor of shape [1]
  // The sizes of a tensor as numbers, where the file calls the tensor `name`.
  std::vector<Traced> sizes_of(const std::string& name, const Traced& tensor);
  // Whether a size of an argument is not constant over all inputs.
  bool is_open(const char* name, int64_t dim) const { return tracer_.is_open_size(in(name), dim); }
  std::string reshape(const std::string& name, std::span<const Traced> sizes);
  std::string reshape(const std::string& name, const Dims& sizes);
  std::string transpose(const std::string& name, const Dims& order);

 private:
  ModelWriter& writer_;
};

// How an operator is written; null if there is no ONNX equivalent. `name` is "aten::add", also for in-place variants.
using Handler = void (*)(Call& call);
Handler find_handler(std::string_view name);

struct HandlerRow {
  const char* name;
  Handler handler;
};
// The table of handlers, by family.
std::span<const HandlerRow> pointwise_rows();
std::span<const HandlerRow> function_rows();
std::span<const HandlerRow> reduce_rows();
std::span<const HandlerRow> shape_rows();
std::span<const HandlerRow> index_rows();
std::span<const HandlerRow> layer_rows();
std::span<const HandlerRow> recurrent_rows();
std::span<const HandlerRow> number_rows();
// For operators on scalars only.
void write_number(Call& call);

}  // namespace tensord::jit::onnx
