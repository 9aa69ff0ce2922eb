// Operators on numbers and lists: dynamic sizes are computed in the file too.
#include <algorithm>
#include <map>
#include <string_view>

#include "core/base/error.h"
#include "core/jit/exporters/onnx/call.h"
#include "core/jit/importers/onnx/tensors.h"

namespace tensord::jit::onnx {
namespace {

DType type_of_number(const Traced& number) {
  return number.a.is_int() ? DType::kInt64 : number.a.is_bool() ? DType::kBool : DType::kFloat64;
}

// A number as a tensor of shape [1]; "" if the file cannot express it.
std::string number_vector(Call& c, const Traced& number, DType type) {
  if (number.is_dynamic) return number.number.empty() ? "" : c.cast(number.number, type_of_number(number), type);
  const double value = number.a.is_int()    ? 0
                       : number.a.is_bool() ? (number.a.to_bool() ? 1.0 : 0.0)
                                            : number.a.to_float();
  const Tensor tensor = Tensor::empty(Dims{1}, DType::kFloat64);
  tensor.data<double>()[0] = value;
  if (!number.a.is_int()) return c.constant(tensor.to(type));
  const Tensor integer = Tensor::empty(Dims{1}, DType::kInt64);
  integer.data<int64_t>()[0] = number.a.to_int();
  return c.constant(integer.to(type));
}

// floor(a / b) of integers.
std::string floor_of(Call& c, const std::string& a, const std::string& b) {
  // Mod has the sign of the divisor, so the difference is divisible.
  return c.emit("Div", {c.emit("Sub", {a, c.emit("Mod", {a, b})}), b});
}

struct NumberForm {
  const char* op_type;
  bool is_float;  // computed in float64 whatever the argument types
};

const std::map<std::string_view, NumberForm> kForms = {
    {"aten::add", {"Add", false}},    {"aten::sub", {"Sub", false}},           {"aten::mul", {"Mul", false}},
    {"aten::div", {"Div", true}},     {"aten::floordiv", {"FloorDiv", false}}, {"aten::remainder", {"Mod", false}},
    {"aten::neg", {"Neg", false}},    {"prim::min", {"Min", false}},           {"prim::max", {"Max", false}},
    {"aten::floor", {"Floor", true}}, {"aten::ceil", {"Ceil", true}},          {"aten::sqrt", {"Sqrt", true}},
    {"aten::Int", {"Int", false}},    {"aten::Float", {"Float", true}},
};

const std::map<std::string_view, const char*> kComparisons = {
    {"aten::eq", "Equal"},   {"aten::ne", "Equal"},       {"aten::lt", "Less"},
    {"aten::gt", "Greater"}, {"aten::le", "LessOrEqual"}, {"aten::ge", "GreaterOrEqual"},
};

// A comparison of two ints or floats, or the negation of a bool.
void write_bool(Call& c) {
  Traced& result = c.results()[0];
  const std::string_view name = c.op().schema.name;
  const std::vector<Traced>& given = c.arguments();
  if (name == "aten::__not__" && given[0].a.is_bool() && !given[0].number.empty()) {
    result.number = c.emit("Not", {given[0].number});
  }
  const auto found = kComparisons.find(name);
  const auto is_plain = [](const Traced& one) { return one.a.is_int() || one.a.is_float(); };
  if (found == kComparisons.end() || given.size() != 2 || !std::ranges::all_of(given, is_plain)) return;
  const DType type = given[0].a.is_int() && given[1].a.is_int() ? DType::kInt64 : DType::kFloat64;
  const std::string first = number_vector(c, given[0], type), second = number_vector(c, given[1], type);
  if (first.empty() || second.empty()) return;
  result.number = c.emit(found->second, {first, second});
  if (name == "aten::ne") result.number = c.emit("Not", {result.number});
}

}  // namespace

void write_number(Call& c) {
  Traced& result = c.results()[0];
  if (result.a.is_bool() && result.is_dynamic) write_bool(c);
  const auto found = kForms.find(c.op().schema.name);
  if (found == kForms.end() || !result.is_number() || result.a.is_bool()) return;
  const NumberForm& form = found->second;
  std::vector<Traced> operands;
  for (const ops::Argument& argument : c.op().schema.arguments) operands.push_back(c.in(argument.name.c_str()));
  DType type = result.a.is_int() ? DType::kInt64 : DType::kFloat64;
  if (form.is_float) type = DType::kFloat64;
  const std::string_view op_type = form.op_type;
  if (op_type == "Int" || op_type == "Float") type = type_of_number(operands[0]);
  Strings names;
  for (const Traced& operand : operands) {
    if (!operand.is_number()) return;
    names.push_back(number_vector(c, operand, type));
    if (names.back().empty()) return;
  }
  const DType given = result.a.is_int() ? DType::kInt64 : DType::kFloat64;
  if (op_type == "FloorDiv") {
    if (type != DType::kInt64 || names.size() != 2) return;
    result.number = floor_of(c, names[0], names[1]);
    return;
  }
  if (op_type == "Mod" && type != DType::kInt64) return;
  if (op_type == "Int" || op_type == "Float") {
    result.number = c.cast(names[0], type, given);
    return;
  }
  result.number = c.cast(c.emit(form.op_type, names), type, given);
}

namespace {

void size(Call& c) {
  std::vector<Traced> sizes = c.sizes_of(c.x(), c.first());
  if (c.has("dim")) {
    c.results()[0] = sizes.at(static_cast<size_t>(c.dim("dim", c.t().ndim())));
    return;
  }
  c.results()[0].items = std::make_shared<std::vector<Traced>>(std::move(sizes));
}

void length(Call& c) { c.results()[0] = c.sizes_of(c.tracer().name_of(c.first()), c.first()).at(0); }

void numel(Call& c) {
  if (!c.tracer().has_open_sizes(c.first())) {
    c.results()[0] = tracing::wrap(c.t().numel());
    return;
  }
  c.set_number(c.reshape(c.emit("Size", {c.x()}), Dims{1}));
}

// Reads a tensor's element as a number.
void element(Call& c) {
  const char* name = c.op().schema.arguments[0].name.c_str();
  if (!c.in(name).a.is_strided()) return write_number(c);
  const Traced& result = c.results()[0];
  const DType type = result.a.is_int() ? DType::kInt64 : result.a.is_bool() ? DType::kBool : DType::kFloat64;
  c.set_number(c.reshape(c.cast(c.x(name), c.t(name).dtype(), type), Dims{1}));
}

void number_to_tensor(Call& c) {
  if (!c.first().items) return c.set(c.scalar(c.first(), c.dtype()));
  const auto is_int = [](const Traced& one) { return one.a.is_int(); };
  if (!std::ranges::all_of(*c.first().items, is_int)) c.refuse("such a list cannot be exported to ONNX");
  c.set(c.cast(c.size_vector(*c.first().items), DType::kInt64, c.dtype()));
}

void as_tensor(Call& c) {
  if (!c.first().a.is_strided()) return number_to_tensor(c);
  c.set(c.cast(c.tracer().name_of(c.first()), c.first().a.to_tensor().dtype(), c.dtype()));
}

}  // namespace

std::span<const HandlerRow> number_rows() {
  static const HandlerRow kRows[] = {
      {"aten::size", size},
      {"aten::sym_size", size},
      {"aten::len", length},
      {"aten::numel", numel},
      {"aten::sym_numel", numel},
      {"aten::floordiv", write_number},
      {"prim::min", write_number},
      {"prim::max", write_number},
      {"aten::Int", element},
      {"aten::Float", element},
      {"aten::Bool", element},
      {"aten::__not__", write_number},
      {"aten::is_nonzero", element},
      {"aten::item", element},
      {"aten::_local_scalar_dense", element},
      {"aten::IntImplicit", element},
      {"aten::ScalarImplicit", element},
      {"prim::NumToTensor", number_to_tensor},
      {"aten::tensor", number_to_tensor},
      {"aten::as_tensor", as_tensor},
      {"aten::scalar_tensor", number_to_tensor},
  };
  return kRows;
}

}  // namespace tensord::jit::onnx
