// Operators on numbers and lists: sizes that are open are computed in the file as well.
#include <map>
#include <string_view>

#include "core/base/error.h"
#include "core/jit/formats/onnx/tensors.h"
#include "core/jit/formats/onnx_export/call.h"

namespace tensord::jit::onnx {
namespace {

DType type_of_number(const Traced& number) {
  return number.a.is_int() ? DType::kInt64 : number.a.is_bool() ? DType::kBool : DType::kFloat64;
}

// A number as a tensor of shape [1]; "" when the file has nothing for it.
std::string vector_of(Call& c, const Traced& number, DType type) {
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
  // Mod has the sign of the divisor, so what is left over is divided without rest.
  return c.emit("Div", {c.emit("Sub", {a, c.emit("Mod", {a, b})}), b});
}

struct NumberForm {
  const char* op_type;
  bool is_float;  // computed in float64 whatever the arguments are
};

const std::map<std::string_view, NumberForm> kForms = {
    {"aten::add", {"Add", false}},    {"aten::sub", {"Sub", false}},           {"aten::mul", {"Mul", false}},
    {"aten::div", {"Div", true}},     {"aten::floordiv", {"FloorDiv", false}}, {"aten::remainder", {"Mod", false}},
    {"aten::neg", {"Neg", false}},    {"prim::min", {"Min", false}},           {"prim::max", {"Max", false}},
    {"aten::floor", {"Floor", true}}, {"aten::ceil", {"Ceil", true}},          {"aten::sqrt", {"Sqrt", true}},
    {"aten::Int", {"Int", false}},    {"aten::Float", {"Float", true}},
};

}  // namespace

// [a, b] + [c]
bool join_lists(Call& c) {
  Traced& result = c.results()[0];
  if (c.op().schema.name != "aten::add" || !result.items) return false;
  auto joined = std::make_shared<std::vector<Traced>>();
  for (const ops::Argument& argument : c.op().schema.arguments) {
    const Traced& list = c.in(argument.name.c_str());
    if (!list.items) return false;
    joined->insert(joined->end(), list.items->begin(), list.items->end());
  }
  result.items = std::move(joined);
  return true;
}

void write_number(Call& c) {
  Traced& result = c.results()[0];
  if (join_lists(c)) return;
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
    names.push_back(vector_of(c, operand, type));
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
  const Tensor &a = c.t(), &b = c.t2();
  const std::string x = c.x();
  std::vector<Traced> sizes = c.sizes_of(x, a, b);
  if (c.has("dim")) {
    c.results()[0] = sizes.at(static_cast<size_t>(c.dim("dim", a.ndim())));
    return;
  }
  c.results()[0].items = std::make_shared<std::vector<Traced>>(std::move(sizes));
}

void length(Call& c) {
  const ops::Argument& argument = c.op().schema.arguments[0];
  const Traced& list = c.in(argument.name.c_str());
  if (list.items) {
    const int64_t count = std::ssize(*list.items) / (list.a.is_dict() ? 2 : 1);
    c.results() = {Tracer::wrap(count, count)};
    return;
  }
  const Tensor &a = c.t(argument.name.c_str()), &b = c.t2(argument.name.c_str());
  c.results()[0] = c.sizes_of(c.x(argument.name.c_str()), a, b).at(0);
}

void numel(Call& c) {
  const Tensor &a = c.t(), &b = c.t2();
  if (a.numel() == b.numel()) {
    c.results()[0] = Tracer::wrap(a.numel(), b.numel());
    return;
  }
  c.set_number(c.reshape(c.emit("Size", {c.x()}), Dims{1}));
}

// The element of a tensor as a number.
void element(Call& c) {
  const char* name = c.op().schema.arguments[0].name.c_str();
  if (!c.in(name).a.is_tensor()) return write_number(c);
  const Traced& result = c.results()[0];
  const DType type = result.a.is_int() ? DType::kInt64 : result.a.is_bool() ? DType::kBool : DType::kFloat64;
  c.set_number(c.reshape(c.cast(c.x(name), c.t(name).dtype(), type), Dims{1}));
}

void number_to_tensor(Call& c) {
  const char* name = c.op().schema.arguments[0].name.c_str();
  c.set(c.scalar(c.in(name), c.dtype()));
}

void copy_list(Call& c) {
  const Traced& list = c.in(c.op().schema.arguments[0].name.c_str());
  if (!list.items) c.refuse("has no form in ONNX here");
  c.results()[0].items = std::make_shared<std::vector<Traced>>(*list.items);
}

std::vector<Traced>& items_of(Call& c) {
  const Traced& list = c.in(c.op().schema.arguments[0].name.c_str());
  if (!list.items) c.refuse("has no form in ONNX here");
  return *list.items;
}

void append(Call& c) {
  items_of(c).push_back(c.in("el"));
  c.results() = {c.in("self")};
}

void set_item(Call& c) {
  std::vector<Traced>& items = items_of(c);
  const Traced& key = c.in(c.op().schema.arguments[1].name.c_str());
  const Traced& value = c.in(c.op().schema.arguments[2].name.c_str());
  if (!c.in(c.op().schema.arguments[0].name.c_str()).a.is_dict()) {
    const int64_t index = wrap_dim(c.integer(c.op().schema.arguments[1].name.c_str()), std::ssize(items));
    items[static_cast<size_t>(index)] = value;
    return;
  }
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (!items[i].a.equals(key.a)) continue;
    items[i + 1] = value;
    return;
  }
  items.push_back(key);
  items.push_back(value);
}

void contains(Call& c) {
  const Traced& all = c.in(c.op().schema.arguments[0].name.c_str());
  const Traced& key = c.in(c.op().schema.arguments[1].name.c_str());
  // Of a dict only its keys count, and those are known.
  if (all.a.is_dict() && all.items) {
    bool is_there = false;
    for (size_t i = 0; i + 1 < all.items->size(); i += 2) is_there = is_there || (*all.items)[i].a.equals(key.a);
    c.results() = {Tracer::wrap(is_there, is_there)};
  }
}

void dict_items(Call& c) {
  const Traced& dict = c.in(c.op().schema.arguments[0].name.c_str());
  if (!dict.items) c.refuse("has no form in ONNX here");
  const std::string_view name = c.op().schema.name;
  std::vector<Traced>& out = *c.results()[0].items;
  for (size_t i = 0; i < out.size(); ++i) {
    const Traced &key = (*dict.items)[2 * i], &value = (*dict.items)[2 * i + 1];
    if (name == "aten::keys") {
      out[i] = key;
    } else if (name == "aten::values") {
      out[i] = value;
    } else {
      *out[i].items = {key, value};
    }
  }
}

void get_item(Call& c) {
  const Traced& list = c.in(c.op().schema.arguments[0].name.c_str());
  const char* name = c.op().schema.arguments[1].name.c_str();
  if (list.a.is_dict() && list.items) {
    for (size_t i = 0; i + 1 < list.items->size(); i += 2) {
      if (!(*list.items)[i].a.equals(c.in(name).a)) continue;
      const Traced item = (*list.items)[i + 1];
      c.results() = {item};
      return;
    }
  }
  if (!list.is_list()) c.refuse("has no form in ONNX here");
  const int64_t index = wrap_dim(c.integer(name), std::ssize(*list.items));
  const Traced item = (*list.items)[static_cast<size_t>(index)];
  c.results() = {item};
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
      {"aten::item", element},
      {"aten::_local_scalar_dense", element},
      {"aten::IntImplicit", element},
      {"aten::ScalarImplicit", element},
      {"prim::NumToTensor", number_to_tensor},
      {"aten::tensor", number_to_tensor},
      {"aten::scalar_tensor", number_to_tensor},
      {"aten::append", append},
      {"aten::list", copy_list},
      {"aten::_set_item", set_item},
      {"aten::__contains__", contains},
      {"aten::items", dict_items},
      {"aten::keys", dict_items},
      {"aten::values", dict_items},
      {"aten::__getitem__", get_item},
  };
  return kRows;
}

}  // namespace tensord::jit::onnx
