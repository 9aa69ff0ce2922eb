#include <iterator>

#include "core/base/error.h"
#include "core/jit/archive/check_bools.h"
#include "core/jit/archive/storage_types.h"
#include "core/jit/archive/unpickler.h"
#include "core/ops/custom_class.h"
#include "core/tensor/dtype_names.h"

namespace tensord::jit {

using ops::TypePtr;
using ops::Value;

namespace {

constexpr std::string_view kTorch = "torch.";
constexpr std::string_view kScriptTypes = "__torch__.";

}  // namespace

Value Unpickler::global(const std::string& name) {
  const auto it = globals_.find(name);
  if (it != globals_.end()) return it->second;
  Value value = make_global(name);
  globals_.emplace(name, value);
  return value;
}

// The complete list of names that a pickle may use.
Value Unpickler::make_global(const std::string& name) {
  const auto make = [&](Call call, TypePtr type = nullptr) {
    return Value(IntrusivePtr<ops::OpaqueObject>(make_intrusive<Global>(name, call, std::move(type))));
  };
  struct Function {
    std::string_view name;
    Call call;
    TypePtr type;
  };
  const Function functions[] = {
      {"torch._utils._rebuild_tensor_v2", &Unpickler::call_tensor, nullptr},
      {"torch._utils._rebuild_tensor", &Unpickler::call_tensor, nullptr},
      {"torch._utils._rebuild_sparse_tensor", &Unpickler::call_sparse, nullptr},
      {"torch._utils._rebuild_sparse_csr_tensor", &Unpickler::call_sparse, nullptr},
      {"torch.serialization._get_layout", &Unpickler::call_layout, nullptr},
      {"torch._utils._rebuild_parameter", &Unpickler::call_parameter, nullptr},
      // The state has the attributes that Python code set on the parameter.
      {"torch._utils._rebuild_parameter_with_state", &Unpickler::call_parameter, nullptr},
      {"torch._tensor._rebuild_from_type_v2", &Unpickler::call_typed_tensor, nullptr},
      {"torch.Tensor", &Unpickler::call_nothing, nullptr},
      {"torch.nn.parameter.Parameter", &Unpickler::call_nothing, nullptr},
      {"torch.nn.parameter.Buffer", &Unpickler::call_nothing, nullptr},
      {"torch._dynamo.decorators._DimRange", &Unpickler::call_nothing, nullptr},
      {"builtins.set", &Unpickler::call_set, nullptr},
      {"__builtin__.set", &Unpickler::call_set, nullptr},
      {"torch.jit._pickle.build_intlist", &Unpickler::call_typed_list, ops::int_type()},
      {"torch.jit._pickle.build_doublelist", &Unpickler::call_typed_list, ops::float_type()},
      {"torch.jit._pickle.build_boollist", &Unpickler::call_typed_list, ops::bool_type()},
      {"torch.jit._pickle.build_tensorlist", &Unpickler::call_typed_list, ops::tensor_type()},
      {"torch.jit._pickle.restore_type_tag", &Unpickler::call_type_tag, nullptr},
      {"collections.OrderedDict", &Unpickler::call_ordered_dict, nullptr},
      {"torch.device", &Unpickler::call_device, nullptr},
      {"torch.Size", &Unpickler::call_size, nullptr},
      {"builtins.complex", &Unpickler::call_complex, nullptr},
      {"__builtin__.complex", &Unpickler::call_complex, nullptr},
  };
  for (const Function& function : functions) {
    if (function.name == name) return make(function.call, function.type);
  }
  if (auto quantized = quantized_global(name)) return *std::move(quantized);
  if (auto numpy = numpy_global(name)) return *std::move(numpy);
  if (name.starts_with(kTorch)) {
    std::string_view rest = std::string_view(name).substr(kTorch.size());
    if (const auto dtype = dtype_of_torch_name(rest)) return Value(*dtype);
    const bool is_untyped = rest == "storage.UntypedStorage" || rest == "UntypedStorage";
    if (const auto dtype = is_untyped ? DType::kUInt8 : dtype_of_storage_class(rest)) {
      Value value = make(nullptr);
      static_cast<Global*>(value.to_opaque().get())->storage_dtype = static_cast<int>(*dtype);
      return value;
    }
  }
  if (name.starts_with(kScriptTypes) && context_.find_type) {
    TypePtr type = context_.find_type(name);
    if (type && type->kind() == ops::TypeKind::kClass) return make(nullptr, std::move(type));
    if (type && type->kind() == ops::TypeKind::kOpaque && ops::find_custom_class(name))
      return make(nullptr, std::move(type));
    if (type && type->kind() == ops::TypeKind::kEnum) return make(&Unpickler::call_enum, std::move(type));
    fail(ErrorCode::kUnimplemented, context_.source, ": class '", name, "' is not supported");
  }
  fail(ErrorCode::kUnimplemented, context_.source, ": pickle: class '", name, "' is not allowed");
}

const Value& Unpickler::argument(const Global& callee, std::span<const Value> arguments, size_t index) const {
  if (index >= arguments.size()) malformed(concat("too few arguments for ", callee.name));
  return arguments[index];
}

Dims Unpickler::to_dims(const Value& value, const char* what) const {
  if (!value.is_tuple() || value.to_tuple()->items.size() > kMaxDims) malformed(concat("a tensor has bad ", what));
  Dims dims;
  for (const Value& item : value.to_tuple()->items) {
    if (!item.is_int()) malformed(concat("a tensor has bad ", what));
    dims.push_back(item.to_int());
  }
  return dims;
}

// (storage, offset, sizes, strides, requires_grad, hooks)
Value Unpickler::call_tensor(const Global& callee, std::span<const Value> arguments) {
  const Value& first = argument(callee, arguments, 0);
  const auto* ref = as<StorageRef>(first);
  const Value& offset = argument(callee, arguments, 1);
  if (!ref || ref->quantized || !offset.is_int()) malformed("a tensor has no storage");
  const Dims sizes = to_dims(argument(callee, arguments, 2), "sizes");
  const Dims strides = to_dims(argument(callee, arguments, 3), "strides");
  spend(16);
  try {
    const Tensor tensor = Tensor::from_storage(ref->storage, sizes, strides, offset.to_int(), ref->dtype);
    viewed_.add(tensor, context_.source);
    check_bools(tensor, "a tensor of bools");
    record_requires_grad(tensor, arguments, 4);
    return Value(tensor);
  } catch (const Error& error) {
    if (std::string_view(error.what()).starts_with(context_.source)) throw;
    throw Error(error.code() == ErrorCode::kInvalidArgument ? ErrorCode::kDataLoss : error.code(),
                concat(context_.source, ": ", error.what()));
  }
}

Value Unpickler::call_parameter(const Global& callee, std::span<const Value> arguments) {
  const Value& data = argument(callee, arguments, 0);
  if (!data.is_strided()) malformed("a parameter has no tensor");
  record_requires_grad(data.to_tensor(), arguments, 1);
  return data;
}

// (function, type, its arguments, state): a tensor with attributes set by Python code, as torch.export and mark_dynamic
// set them on examples. The attributes do not change the tensor's value.
Value Unpickler::call_typed_tensor(const Global& callee, std::span<const Value> arguments) {
  const auto* function = as<Global>(argument(callee, arguments, 0));
  const auto* type = as<Global>(argument(callee, arguments, 1));
  // Nested calls are rejected: no writer makes them, and they could be nested without limit.
  const bool is_nested = function && function->call == &Unpickler::call_typed_tensor;
  if (!function || !function->call || is_nested || !type) malformed("a tensor with attributes has no function or type");
  if (type->call != &Unpickler::call_nothing || !type->name.starts_with(kTorch)) {
    fail(ErrorCode::kUnimplemented, context_.source, ": pickle: tensors of class '", type->name, "' are not supported");
  }
  const Value result = call(*function, argument(callee, arguments, 2));
  if (!result.is_strided()) malformed("a tensor with attributes is none");
  return result;
}

// Returns an empty dict and ignores the state: for objects that occur only as attributes of tensors, and for types that
// only call_typed_tensor uses.
Value Unpickler::call_nothing(const Global&, std::span<const Value>) { return new_dict(); }

Value Unpickler::call_set(const Global& callee, std::span<const Value> arguments) {
  const Value& items = argument(callee, arguments, 0);
  if (!items.is_list()) malformed("a set has no list");
  return items;
}

// Old archives do not store the flag.
void Unpickler::record_requires_grad(const Tensor& tensor, std::span<const Value> arguments, size_t index) const {
  if (!context_.requires_grad || index >= arguments.size()) return;
  if (arguments[index].is_bool() && arguments[index].to_bool() &&
      (is_floating(tensor.dtype()) || is_complex(tensor.dtype()))) {
    context_.requires_grad(tensor);
  }
}

Value Unpickler::call_typed_list(const Global& callee, std::span<const Value> arguments) {
  return conformer_.conform(argument(callee, arguments, 0), ops::list_type(callee.type));
}

Value Unpickler::call_type_tag(const Global& callee, std::span<const Value> arguments) {
  const Value& value = require_plain(argument(callee, arguments, 0));
  const Value& tag = argument(callee, arguments, 1);
  if (!tag.is_string()) malformed("a type tag is not a string");
  const ops::TypeResolver nothing = [](const std::string&) { return TypePtr(); };
  const TypePtr type = ops::parse_annotation(tag.to_string(), context_.find_type ? context_.find_type : nothing);
  Value typed = conformer_.conform(value, type);
  // Naming a tuple makes a new one; its items were already counted.
  return typed.is_tuple() ? new_container(typed, 4) : typed;
}

Value Unpickler::call_ordered_dict(const Global& callee, std::span<const Value> arguments) {
  if (!arguments.empty()) malformed(concat("arguments for ", callee.name));
  return new_dict();
}

Value Unpickler::call_device(const Global& callee, std::span<const Value> arguments) {
  const Value& kind = argument(callee, arguments, 0);
  if (!kind.is_string()) malformed("a device has no name");
  std::string name = kind.to_string();
  if (arguments.size() > 1 && arguments[1].is_int()) name += concat(":", arguments[1].to_int());
  return Value(parse_device(name));
}

Value Unpickler::call_size(const Global& callee, std::span<const Value> arguments) {
  const Dims dims = to_dims(argument(callee, arguments, 0), "sizes");
  Value list = new_list(std::vector<Value>(dims.begin(), dims.end()));
  list.to_list()->element = ops::int_type();
  return list;
}

Value Unpickler::call_complex(const Global& callee, std::span<const Value> arguments) {
  const Value &real = argument(callee, arguments, 0), &imaginary = argument(callee, arguments, 1);
  if (!real.is_number() || !imaginary.is_number()) malformed("a complex number has no two parts");
  return std::complex<double>(real.to_scalar().to_double(), imaginary.to_scalar().to_double());
}

Value Unpickler::call_enum(const Global& callee, std::span<const Value> arguments) {
  const Value& value = argument(callee, arguments, 0);
  if (!value.is_number() && !value.is_string())
    malformed(concat("the value of enum ", callee.name, " is not supported"));
  if (context_.enum_member) return context_.enum_member(callee.type, value);
  return Value(make_intrusive<ops::EnumObject>(callee.type, std::string(), value));
}

}  // namespace tensord::jit
