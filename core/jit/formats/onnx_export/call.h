#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/jit/formats/export_tracing/call.h"
#include "core/jit/formats/onnx_export/writer.h"

namespace tensord::jit::onnx {

using tracing::Traced;
using tracing::Tracer;

// A call that is written as ONNX. Of a number that is dynamic the file has an int64, float or bool tensor of one
// element, shape [1].
class Call : public tracing::Call {
 public:
  Call(tracing::Call&& call, ModelWriter& writer) : tracing::Call(std::move(call)), writer_(writer) {}

  // A tensor's name in the file.
  std::string x(const char* name = "self") {
    if (!in(name).a.is_strided()) refuse_form();
    return tracer_.name_of(in(name));
  }

  // What goes into the file.
  std::string emit(const char* op_type, const Strings& inputs, const Attributes& attributes = {});
  Strings emit_many(const char* op_type, const Strings& inputs, const Attributes& attributes, size_t count);
  std::string constant(const Tensor& tensor) { return writer_.add_initializer("constant", tensor); }
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
  // The sizes of a tensor as numbers, which the file has as `name`.
  std::vector<Traced> sizes_of(const std::string& name, const Traced& tensor);
  // Whether a size of an argument is not the same for every input.
  bool is_open(const char* name, int64_t dim) const { return tracer_.is_open_size(in(name), dim); }
  std::string reshape(const std::string& name, std::span<const Traced> sizes);
  std::string reshape(const std::string& name, const Dims& sizes);
  std::string transpose(const std::string& name, const Dims& order);

 private:
  ModelWriter& writer_;
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
std::span<const HandlerRow> function_rows();
std::span<const HandlerRow> reduce_rows();
std::span<const HandlerRow> shape_rows();
std::span<const HandlerRow> index_rows();
std::span<const HandlerRow> layer_rows();
std::span<const HandlerRow> recurrent_rows();
std::span<const HandlerRow> number_rows();
// Of operators that take and give numbers alone.
void write_number(Call& call);

}  // namespace tensord::jit::onnx
