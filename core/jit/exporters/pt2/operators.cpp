// Writes operator calls as nodes of an exported program.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/base/error.h"
#include "core/jit/exporters/pt2/program_writer.h"
#include "core/jit/importers/pt2/enums.h"
#include "core/ops/attributes/exported.h"
#include "core/ops/run.h"
#include "ops/view.h"

namespace tensord::jit::pt2 {
namespace {

// Operators of scripts only: they make tensors from numbers, or convert.
bool makes_tensor_of_numbers(const ops::Op& op) {
  const std::string_view name = op.schema.name;
  return name == "prim::NumToTensor" || name == "aten::tensor" || name == "aten::scalar_tensor" ||
         (name == "aten::as_tensor" && !op.schema.overload.empty());
}
template <class Attribute>
bool has(const ops::Op& op) {
  return op.attributes.get<Attribute>() != nullptr;
}
bool is_conversion(const ops::Op& op) {
  return (op.schema.name == "aten::to" && op.schema.overload.starts_with("prim_")) ||
         (op.schema.name == "aten::as_tensor" && op.schema.overload.empty());
}

struct NumberFunction {
  std::string_view op;
  const char* target;
  char kind;  // result: 'i' int, 'f' float, 's' as the operands
};

// Python functions that exported programs apply to numbers.
constexpr NumberFunction kNumbers[] = {
    {"aten::add", "_operator.add", 's'},
    {"aten::sub", "_operator.sub", 's'},
    {"aten::mul", "_operator.mul", 's'},
    {"aten::div", "_operator.truediv", 'f'},
    {"aten::floordiv", "_operator.floordiv", 's'},
    {"aten::floor_divide", "_operator.floordiv", 's'},
    {"aten::remainder", "_operator.mod", 's'},
    {"aten::neg", "_operator.neg", 's'},
    {"prim::min", "torch.sym_min", 's'},
    {"prim::max", "torch.sym_max", 's'},
    {"aten::floor", "math.floor", 'i'},
    {"aten::ceil", "math.ceil", 'i'},
    {"aten::Int", "math.trunc", 'i'},
    {"aten::Float", "torch.sym_float", 'f'},
};

const NumberFunction* find_number_function(std::string_view op) {
  const auto found = std::ranges::find(kNumbers, op, &NumberFunction::op);
  return found == std::end(kNumbers) ? nullptr : &*found;
}

Json float_json(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

bool is_tensor_list(const ops::Type& type) {
  return type.kind() == ops::TypeKind::kList &&
         (type.element()->kind() == ops::TypeKind::kTensor || type.element()->kind() == ops::TypeKind::kOptional);
}

const ops::Type& without_optional(const ops::Argument& formal) {
  return formal.type->kind() == ops::TypeKind::kOptional ? *formal.type->element() : *formal.type;
}

std::string python_target(const ops::Op& op) {
  const std::string name = op.schema.name.substr(op.schema.name.find("::") + 2);
  std::string overload = op.schema.overload.empty() ? "default" : op.schema.overload;
  // Only scripts have these.
  if (op.schema.full_name() == "aten::split") overload = "sizes";
  return concat("torch.ops.aten.", name, ".", overload);
}

bool gives_tensors(const ops::Op& op) {
  return !op.schema.returns.empty() && std::ranges::all_of(op.schema.returns, [](const ops::Argument& one) {
    return one.type->kind() == ops::TypeKind::kTensor || is_tensor_list(*one.type);
  });
}

}  // namespace

bool is_program_operator(const ops::Op& op) {
  const std::string name = op.schema.full_name();
  if (!name.starts_with("aten::") || op.schema.is_vararg || !gives_tensors(op)) return false;
  const bool has_out = std::ranges::any_of(
      op.schema.arguments, [](const ops::Argument& one) { return one.is_keyword_only && one.alias.is_write; });
  return !has_out && !has<ops::NotInPyTorch>(op) && op.schema.name != "aten::as_tensor" &&
         op.schema.name != "aten::cpu" && op.schema.name != "aten::grad";
}

bool ProgramWriter::can_write(const ops::Op& op) const {
  const std::string_view name = op.schema.name;
  return is_program_operator(op) || makes_tensor_of_numbers(op) || is_conversion(op) || has<ops::ReadsElement>(op) ||
         has<ops::ComparesNumbers>(op) || find_number_function(name) || name == "aten::Bool" ||
         name == "aten::__not__" || name == "prim::tolist" || name == "aten::size" || name == "aten::sym_size" ||
         name == "aten::numel" || name == "aten::sym_numel" || name == "aten::len";
}

void ProgramWriter::write(Call& call) {
  if (is_conversion(call.op())) return write_conversion(call);
  if (makes_tensor_of_numbers(call.op())) return write_tensor_of_numbers(call);
  if (call.results().empty()) call.refuse_form();
  if (!call.results()[0].a.is_strided() && !is_program_operator(call.op())) {
    if (!write_sizes(call)) write_number(call);
    return;
  }
  write_operator(call, python_target(call.op()));
  follow_elements(call);
}

void ProgramWriter::write_operator(Call& call, const std::string& target) {
  const std::vector<ops::Argument>& formals = call.op().schema.arguments;
  // Omits trailing arguments and keyword arguments that equal their defaults.
  const auto is_default = [&](size_t i) {
    const Traced& value = call.arguments()[i];
    return formals[i].default_value && !call.tracer().is_dynamic(value) &&
           formals[i].default_value->equals(call.tracer().to_value(value, false));
  };
  size_t positional = 0;
  for (size_t i = 0; i < formals.size(); ++i) {
    if (!formals[i].is_keyword_only && !is_default(i)) positional = i + 1;
  }
  Json inputs = Json::array();
  for (size_t i = 0; i < formals.size(); ++i) {
    if (formals[i].is_keyword_only ? is_default(i) : i >= positional) continue;
    inputs.push_back({{"name", formals[i].name},
                      {"arg", as_argument(call, formals[i], call.arguments()[i])},
                      {"kind", formals[i].is_keyword_only ? 2 : 1}});
  }
  const std::string short_name = target.substr(15, target.rfind('.') - 15);
  Json outputs = Json::array();
  Strings names;
  const std::vector<OpenSize> known = known_sizes(call);
  const auto name_of = [&](const Traced& tensor) {
    names.push_back(new_name(short_name));
    describe(call.tracer(), names.back(), tensor, known);
    return names.back();
  };
  for (size_t i = 0; i < call.results().size(); ++i) {
    const Traced& result = call.results()[i];
    if (result.a.is_strided()) {
      const std::string name = name_of(result);
      outputs.push_back({{"as_tensor", {{"name", name}}}});
      call.set(name, i);
    } else if (result.items) {
      Json list = Json::array();
      Strings items;
      for (const Traced& item : *result.items) {
        items.push_back(name_of(item));
        list.push_back({{"name", items.back()}});
      }
      outputs.push_back({{"as_tensors", list}});
      call.set_items(items, i);
    } else {
      call.refuse(concat("gives a ", result.a.tag_name()));
    }
  }
  const std::string node =
      names.empty() || call.results().size() > 1 || !call.results()[0].a.is_strided() ? new_name(short_name) : names[0];
  add_node(node, target, inputs, outputs, names, call.op().schema.is_mutating());
}

// to.prim_dtype, as_tensor and similar, which only scripts have.
void ProgramWriter::write_conversion(Call& call) {
  const std::string name = new_name("to");
  Json inputs = {
      {{"name", "self"}, {"arg", {{"as_tensor", {{"name", call.tracer().name_of(call.first())}}}}}, {"kind", 1}},
      {{"name", "dtype"}, {"arg", {{"as_scalar_type", schema_number(call.dtype())}}}, {"kind", 1}}};
  if (call.has("copy") && call.flag("copy")) {
    inputs.push_back({{"name", "non_blocking"}, {"arg", {{"as_bool", false}}}, {"kind", 1}});
    inputs.push_back({{"name", "copy"}, {"arg", {{"as_bool", true}}}, {"kind", 1}});
  }
  describe(call.tracer(), name, call.results()[0], known_sizes(call));
  call.set(name);
  add_node(name, "torch.ops.aten.to.dtype", inputs, {{{"as_tensor", {{"name", name}}}}}, {name}, false);
}

Json ProgramWriter::number_argument(Call& call, const Traced& number) const {
  if (number.is_dynamic) {
    if (number.number.empty() || number.a.is_bool())
      call.refuse("a number depends on a dynamic size or on data in a way that is not written");
    return {{number.a.is_int() ? "as_sym_int" : "as_sym_float", {{"as_name", number.number}}}};
  }
  if (number.a.is_int()) return {{"as_int", number.a.to_int()}};
  if (number.a.is_bool()) return {{"as_bool", number.a.to_bool()}};
  return {{"as_float", float_json(number.a.to_float())}};
}

Json ProgramWriter::list_argument(Call& call, const ops::Argument& formal, const Traced& value) {
  const ops::Type& type = without_optional(formal);
  Json items = Json::array();
  if (is_tensor_list(type)) {
    const bool has_none = type.element()->kind() == ops::TypeKind::kOptional;
    for (const Traced& item : *value.items) {
      if (item.a.is_none()) {
        items.push_back({{"as_none", true}});
      } else {
        const Json name = {{"name", call.tracer().name_of(item)}};
        items.push_back(has_none ? Json({{"as_tensor", name}}) : name);
      }
    }
    return {{has_none ? "as_optional_tensors" : "as_tensors", items}};
  }
  if (call.tracer().is_dynamic(value)) {
    if (type.element()->kind() != ops::TypeKind::kInt)
      call.refuse(concat("'", formal.name, "' depends on a dynamic size"));
    for (const Traced& item : *value.items) {
      Json number = number_argument(call, item);
      items.push_back(item.is_dynamic ? number["as_sym_int"] : number);
    }
    return {{"as_sym_ints", items}};
  }
  const auto add = [&](const char* kind, const auto& convert) {
    for (const Traced& item : *value.items) items.push_back(convert(item.a));
    return Json({{kind, items}});
  };
  switch (type.element()->kind()) {
    case ops::TypeKind::kInt: return add("as_ints", [](const ops::Value& one) { return one.to_int(); });
    case ops::TypeKind::kBool: return add("as_bools", [](const ops::Value& one) { return one.to_bool(); });
    case ops::TypeKind::kFloat:
      return add("as_floats", [](const ops::Value& one) { return float_json(one.to_float()); });
    case ops::TypeKind::kString: return add("as_strings", [](const ops::Value& one) { return one.to_string(); });
    default: call.refuse(concat("'", formal.name, "' is a list of ", type.element()->str(), ", which is not written"));
  }
}

Json ProgramWriter::as_argument(Call& call, const ops::Argument& formal, const Traced& value) {
  const ops::Type& type = without_optional(formal);
  if (value.a.is_none() && !value.is_dynamic) return {{"as_none", true}};
  if (value.a.is_strided()) return {{"as_tensor", {{"name", call.tracer().name_of(value)}}}};
  if (value.items) return list_argument(call, formal, value);
  if (formal.enum_name == "ScalarType") return {{"as_scalar_type", schema_number(dtype_from_number(value.a.to_int()))}};
  if (formal.enum_name == "MemoryFormat") return {{"as_memory_format", memory_format_number(value.a.to_int())}};
  if (formal.enum_name == "Layout") return {{"as_layout", kStridedLayout}};
  // A number for a list of N.
  if (value.is_number() && type.kind() == ops::TypeKind::kList) {
    const Traced all = [&] {
      Traced list;
      list.items = std::make_shared<std::vector<Traced>>(
          static_cast<size_t>(std::max<int64_t>(formal.fixed_list_size, 1)), value);
      return list;
    }();
    return list_argument(call, formal, all);
  }
  if (value.is_number() && type.kind() == ops::TypeKind::kFloat && !value.is_dynamic && value.a.is_int()) {
    return {{"as_float", static_cast<double>(value.a.to_int())}};
  }
  if (value.is_number()) return number_argument(call, value);
  if (value.a.is_complex()) {
    const std::complex<double> number = value.a.to_complex();
    return {{"as_complex", {{"real", float_json(number.real())}, {"imag", float_json(number.imag())}}}};
  }
  if (value.a.is_string()) return {{"as_string", value.a.to_string()}};
  if (value.a.is_device()) return {{"as_device", {{"type", "cpu"}, {"index", nullptr}}}};
  call.refuse(concat("'", formal.name, "' is a ", value.a.tag_name(), ", which is not written"));
}

std::string ProgramWriter::size_of(const std::string& tensor, int64_t dim) {
  std::string& name = sizes_[{tensor, dim}];
  if (!name.empty()) return name;
  const OpenSize& size = shapes_.at(tensor).at(static_cast<size_t>(dim));
  name = declare_number(new_name("sym_size_int"), tracing::wrap(size.a, size.b), size.expression);
  add_node(name, "torch.ops.aten.sym_size.int",
           {{{"name", "self"}, {"arg", {{"as_tensor", {{"name", tensor}}}}}, {"kind", 1}},
            {{"name", "dim"}, {"arg", {{"as_int", dim}}}, {"kind", 1}}},
           {{{"as_sym_int", {{"as_name", name}}}}}, {name}, false);
  return name;
}

Traced ProgramWriter::size_at(Call& call, const Traced& tensor, int64_t dim) {
  Traced size = call.tracer().size_of(tensor, dim);
  if (size.is_dynamic) size.number = size_of(call.tracer().name_of(tensor), dim);
  return size;
}

// Writes size(), len() and numel(). Returns false for other operators.
bool ProgramWriter::write_sizes(Call& call) {
  const std::string_view name = call.op().schema.name;
  if (call.arguments().empty() || !call.first().a.is_strided()) return false;
  const Tensor& a = call.first().a.to_tensor();
  const auto size_at = [&](int64_t dim) { return this->size_at(call, call.first(), dim); };
  if (name == "aten::size" || name == "aten::sym_size") {
    if (call.has("dim")) {
      call.results()[0] = size_at(call.dim("dim", a.ndim()));
      return true;
    }
    auto sizes = std::make_shared<std::vector<Traced>>();
    for (int64_t i = 0; i < a.ndim(); ++i) sizes->push_back(size_at(i));
    call.results()[0].items = std::move(sizes);
    return true;
  }
  if (name == "aten::len") {
    call.results()[0] = size_at(0);
    return true;
  }
  if (name != "aten::numel" && name != "aten::sym_numel") return false;
  // The product of the dynamic sizes.
  Traced product = tracing::wrap(int64_t{1});
  for (int64_t i = 0; i < a.ndim(); ++i) {
    const Traced size = size_at(i);
    Traced next = tracing::wrap(product.a.to_int() * size.a.to_int(), product.b.to_int() * size.b.to_int());
    next.is_dynamic = product.is_dynamic || size.is_dynamic;
    if (next.is_dynamic) next.number = python_number(call, "aten::mul", {product, size}, next);
    product = next;
  }
  call.results()[0] = product;
  return true;
}

// Whether a list contains a number, if that is constant over all inputs.
std::optional<bool> ProgramWriter::contains(const Traced& list, const Traced& number) const {
  if (!list.items) return std::nullopt;
  bool is_certain = true;
  for (const Traced& item : *list.items) {
    const std::optional<bool> is_equal = compare("aten::eq", item, number);
    if (is_equal == true) return true;
    is_certain = is_certain && is_equal.has_value();
  }
  return is_certain ? std::optional(false) : std::nullopt;
}

std::string ProgramWriter::python_number(Call& call, std::string_view op, const std::vector<Traced>& operands,
                                         const Traced& result) {
  const NumberFunction* function = find_number_function(op);
  if (!function || !result.is_number() || result.a.is_bool()) return "";
  for (const Traced& operand : operands) {
    if (!operand.is_number() || operand.a.is_bool() || (operand.is_dynamic && operand.number.empty())) return "";
  }
  const bool gives_int = result.a.is_int();
  if (function->kind == 'i' && !gives_int) return "";
  if (function->kind == 'f' && gives_int) return "";
  // floor, ceil and Int of ints are identities.
  if (operands.size() == 1 && function->kind != 's' && operands[0].a.is_int() == gives_int) return operands[0].number;
  Json inputs = Json::array();
  Strings parts;
  for (size_t i = 0; i < operands.size(); ++i) {
    inputs.push_back({{"name", i == 0 ? "a" : "b"}, {"arg", number_argument(call, operands[i])}, {"kind", 1}});
    if (operands[i].is_dynamic) {
      parts.push_back(expressions_[operands[i].number]);
    } else if (operands[i].a.is_int()) {
      parts.push_back(concat("Integer(", operands[i].a.to_int(), ")"));
    }
  }
  const bool is_plain = gives_int && parts.size() == 2 && operands[0].a.is_int() && operands[1].a.is_int();
  std::string expression;
  if (is_plain && op == "aten::add") expression = concat("Add(", parts[0], ", ", parts[1], ")");
  if (is_plain && op == "aten::sub") expression = concat("Add(", parts[0], ", Mul(Integer(-1), ", parts[1], "))");
  if (is_plain && op == "aten::mul") expression = concat("Mul(", parts[0], ", ", parts[1], ")");
  if (is_plain && function->target == std::string_view("_operator.floordiv")) {
    expression = concat("FloorDiv(", parts[0], ", ", parts[1], ")");
  }
  const std::string_view target = function->target;
  const std::string name = declare_number(new_name(target.substr(target.rfind('.') + 1)), result, expression);
  add_node(name, std::string(target), inputs, {{{gives_int ? "as_sym_int" : "as_sym_float", {{"as_name", name}}}}},
           {name}, false);
  return name;
}

// Numbers that cannot be written can only be used in conditions; any other use is refused.
void ProgramWriter::write_number(Call& call) {
  Traced& result = call.results()[0];
  if (call.op().schema.name == "prim::tolist") {
    const std::optional<Elements> items = elements_of(call, call.first());
    if (items && result.items && items->size() == result.items->size()) *result.items = *items;
    return;
  }
  if (!result.is_dynamic) return;
  const std::string_view name = call.op().schema.name;
  if (result.a.is_bool() && (name == "aten::Bool" || name == "aten::__not__")) {
    result.number = condition_of(call);
    return;
  }
  if (has<ops::ReadsElement>(call.op()) && call.first().a.is_strided()) {
    const std::optional<Elements> items = elements_of(call, call.first());
    if (items && items->size() == 1 && result.a.is_int()) result = items->front();
    return;
  }
  if (result.a.is_bool() && call.arguments().size() == 2) {
    const std::optional<bool> known = name == "aten::__contains__"
                                          ? contains(call.arguments()[0], call.arguments()[1])
                                          : compare(name, call.arguments()[0], call.arguments()[1]);
    result.is_dynamic = !known;
    if (!known && name == "aten::eq") {
      result.equality = std::make_shared<std::pair<Traced, Traced>>(call.arguments()[0], call.arguments()[1]);
    }
    return;
  }
  result.number = python_number(call, name, call.arguments(), result);
}

// Adds a new one-element tensor of a number and returns its name.
std::string ProgramWriter::add_scalar_tensor(Call& call, const Traced& number, const Traced& like) {
  const std::string name = new_name("scalar_tensor");
  const int64_t dtype = schema_number(like.a.to_tensor().dtype());
  describe_fixed(name, like.a.to_tensor());
  add_node(name, "torch.ops.aten.scalar_tensor.default",
           {{{"name", "s"}, {"arg", number_argument(call, number)}, {"kind", 1}},
            {{"name", "dtype"}, {"arg", {{"as_scalar_type", dtype}}}, {"kind", 2}}},
           {{{"as_tensor", {{"name", name}}}}}, {name}, false);
  return name;
}

// Makes a tensor from a number, or from a list of numbers.
void ProgramWriter::write_tensor_of_numbers(Call& call) {
  const Traced& given = call.first();
  Traced& result = call.results()[0];
  if (given.is_number()) {
    call.set(add_scalar_tensor(call, given, result));
    if (given.a.is_int()) set_elements(call, result, {given});
    return;
  }
  if (call.tracer().is_dynamic(given)) return write_list_of_sizes(call);
  // A new tensor each time, because the program may write to it.
  const std::string name = new_name("clone"), constant = add_constant("", call.result().clone());
  describe_fixed(name, result.a.to_tensor());
  call.set(name);
  add_node(name, "torch.ops.aten.clone.default",
           {{{"name", "self"}, {"arg", {{"as_tensor", {{"name", constant}}}}}, {"kind", 1}}},
           {{{"as_tensor", {{"name", name}}}}}, {name}, false);
}

void ProgramWriter::write_list_of_sizes(Call& call) {
  Traced& result = call.results()[0];
  if (result.a.to_tensor().ndim() != 1) call.refuse("a nested list of dynamic sizes is not written as a tensor");
  const auto first_of = [](const ops::Value& all) { return ops::select(all.to_tensor(), 0, 0); };
  const Traced like = tracing::wrap(first_of(result.a), first_of(result.b));
  Json parts = Json::array();
  for (const Traced& number : *call.first().items) {
    parts.push_back({{"name", add_scalar_tensor(call, number, like)}});
  }
  const std::string name = new_name("stack");
  describe_fixed(name, result.a.to_tensor());
  call.set(name);
  add_node(name, "torch.ops.aten.stack.default", {{{"name", "tensors"}, {"arg", {{"as_tensors", parts}}}, {"kind", 1}}},
           {{{"as_tensor", {{"name", name}}}}}, {name}, false);
  set_elements(call, result, *call.first().items);
}

}  // namespace tensord::jit::pt2
