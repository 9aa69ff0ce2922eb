#include "core/jit/exporters/onnx/call.h"

#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "core/jit/importers/onnx/tensors.h"

namespace tensord::jit::onnx {

using ops::Value;

Handler find_handler(std::string_view name) {
  static const std::map<std::string_view, Handler> kHandlers = [] {
    std::map<std::string_view, Handler> all;
    for (const auto& rows : {pointwise_rows(), function_rows(), reduce_rows(), shape_rows(), index_rows(), layer_rows(),
                             recurrent_rows(), number_rows()}) {
      for (const HandlerRow& row : rows) all[row.name] = row.handler;
    }
    return all;
  }();
  auto found = kHandlers.find(name);
  // Some in-place variants are separate operators.
  if (found == kHandlers.end() && name.ends_with('_') && !name.ends_with("__")) {
    found = kHandlers.find(name.substr(0, name.size() - 1));
  }
  return found == kHandlers.end() ? nullptr : found->second;
}

std::string Call::emit(const char* op_type, const Strings& inputs, const Attributes& attributes) {
  return emit_many(op_type, inputs, attributes, 1).front();
}

Strings Call::emit_many(const char* op_type, const Strings& inputs, const Attributes& attributes, size_t count) {
  const std::string& hint = node_.outputs().empty() ? std::string() : node_.output()->name();
  return writer_.add_node(op_type, inputs, attributes, count, hint.empty() ? op_type : hint);
}

std::string Call::int_vector(const Dims& values) {
  const Tensor tensor = Tensor::empty(Dims{std::ssize(values)}, DType::kInt64);
  std::copy(values.begin(), values.end(), tensor.data<int64_t>());
  return constant(tensor);
}

std::string Call::scalar(double value, DType dtype) {
  return constant(Tensor::scalar(value, DType::kFloat64).to(dtype));
}

std::string Call::scalar(const Traced& number, DType dtype) {
  if (!number.is_dynamic) {
    if (number.a.is_int()) return constant(Tensor::scalar(number.a.to_int(), DType::kInt64).to(dtype));
    return scalar(number.a.is_bool() ? (number.a.to_bool() ? 1.0 : 0.0) : number.a.to_float(), dtype);
  }
  if (number.number.empty()) refuse("a number depends on a dynamic size or on data in a way that ONNX cannot express");
  const DType own = number.a.is_int() ? DType::kInt64 : number.a.is_bool() ? DType::kBool : DType::kFloat64;
  return emit("Squeeze", {cast(number.number, own, dtype), int_vector({0})});
}

std::string Call::cast(const std::string& name, DType from, DType to) {
  return from == to ? name : emit("Cast", {name}, {{"to", int64_t{data_type_of(to)}}});
}

std::string Call::operand(const Traced& value, DType dtype) {
  if (!value.a.is_strided()) return scalar(value, dtype);
  return cast(tracer_.name_of(value), value.a.to_tensor().dtype(), dtype);
}

std::string Call::operand(const char* name, DType dtype) { return operand(in(name), dtype); }

std::string Call::size_vector(std::span<const Traced> numbers) {
  if (std::ranges::none_of(numbers, [](const Traced& one) { return one.is_dynamic; })) {
    Dims values;
    for (const Traced& one : numbers) values.push_back(one.a.to_int());
    return int_vector(values);
  }
  Strings parts;
  for (const Traced& one : numbers) {
    if (one.is_dynamic && one.number.empty()) refuse("a size depends on data in a way that ONNX cannot express");
    parts.push_back(one.is_dynamic ? one.number : int_vector({one.a.to_int()}));
  }
  return parts.size() == 1 ? parts[0] : emit("Concat", parts, {{"axis", int64_t{0}}});
}

std::string Call::size_at(const std::string& name, int64_t dim) {
  return emit("Shape", {name}, {{"start", dim}, {"end", dim + 1}});
}

std::vector<Traced> Call::sizes_of(const std::string& name, const Traced& tensor) {
  std::vector<Traced> out;
  for (int64_t i = 0; i < tensor.a.to_tensor().ndim(); ++i) {
    Traced size = tracer_.size_of(tensor, i);
    if (size.is_dynamic) size.number = size_at(name, i);
    out.push_back(std::move(size));
  }
  return out;
}

std::string Call::reshape(const std::string& name, std::span<const Traced> sizes) {
  const bool has_zero =
      std::ranges::any_of(sizes, [](const Traced& size) { return !size.is_dynamic && size.a.to_int() == 0; });
  const Attributes attributes = has_zero ? Attributes{{"allowzero", int64_t{1}}} : Attributes{};
  return emit("Reshape", {name, size_vector(sizes)}, attributes);
}

std::string Call::reshape(const std::string& name, const Dims& sizes) {
  return emit("Reshape", {name, int_vector(sizes)});
}

std::string Call::transpose(const std::string& name, const Dims& order) {
  return emit("Transpose", {name}, {{"perm", std::vector<int64_t>(order.begin(), order.end())}});
}

}  // namespace tensord::jit::onnx
