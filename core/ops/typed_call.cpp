#include "core/ops/typed_call.h"

#include "core/base/inline_vector.h"
#include "core/ops/run.h"

namespace tensord::ops::typed {

namespace {

template <class T>
Value list_of(const TypePtr& element, std::span<const T> items) {
  std::vector<Value> values;
  values.reserve(items.size());
  for (const T& item : items) values.emplace_back(item);
  return Value(make_list(element, std::move(values)));
}

}  // namespace

Value Argument::value() const {
  switch (kind_) {
    case Kind::kNone: return {};
    case Kind::kTensor: return Value(*static_cast<const Tensor*>(payload_.p));
    case Kind::kScalar: return Value(*static_cast<const Scalar*>(payload_.p));
    case Kind::kValue: return *static_cast<const Value*>(payload_.p);
    case Kind::kInt: return Value(payload_.i);
    case Kind::kFloat: return Value(payload_.d);
    case Kind::kBool: return Value(payload_.i != 0);
    case Kind::kDevice: return Value(*static_cast<const Device*>(payload_.p));
    case Kind::kText: return Value(std::string(static_cast<const char*>(payload_.p), size_));
    case Kind::kInts: return make_int_list(items<int64_t>());
    case Kind::kFloats: return list_of(float_type(), items<double>());
    case Kind::kBools: return list_of(bool_type(), items<bool>());
    case Kind::kScalars: return list_of(number_type(), items<Scalar>());
    case Kind::kTensors: return list_of(tensor_type(), items<Tensor>());
    case Kind::kOptionalTensors: return list_of(optional_type(tensor_type()), items<std::optional<Tensor>>());
  }
  return {};
}

Results Slot::call(std::span<const Argument> arguments) {
  const Op* op = op_.load(std::memory_order_acquire);
  if (!op) {
    op = &get_op(name_);
    op_.store(op, std::memory_order_release);
  }
  const auto& formals = op->schema.arguments;
  check_internal(formals.size() == arguments.size(), name_, ": its function has other arguments");
  InlineVector<Value, 8> values;
  for (size_t i = 0; i < arguments.size(); ++i) {
    // The functions' types leave nothing else to convert.
    values.push_back(arguments[i].is_repeated() ? convert(formals[i], arguments[i].value()) : arguments[i].value());
    check(!values.back().is_none() || formals[i].type->kind() != TypeKind::kTensor, name_, ": argument '",
          formals[i].name, "' is an undefined tensor");
  }
  return Results(run(*op, values));
}

}  // namespace tensord::ops::typed
