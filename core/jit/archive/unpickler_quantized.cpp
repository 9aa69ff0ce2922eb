// Quantized tensors and objects of built-in classes (packed weights).
#include "core/base/error.h"
#include "core/jit/archive/unpickler.h"
#include "core/ops/custom_class.h"

namespace tensord::jit {

using ops::QuantizationScheme;
using ops::QuantizedType;
using ops::Quantizer;
using ops::Value;

namespace {

struct Scheme {
  const char* name;
  QuantizationScheme number;
};
constexpr Scheme kSchemes[] = {
    {"torch.per_tensor_affine", QuantizationScheme::kPerTensorAffine},
    {"torch.per_channel_affine", QuantizationScheme::kPerChannelAffine},
    {"torch.per_channel_affine_float_qparams", QuantizationScheme::kPerChannelFloatQParams},
};

struct Element {
  const char* storage;
  const char* dtype;
  QuantizedType type;
};
constexpr Element kElements[] = {
    {"torch.QInt8Storage", "torch.qint8", QuantizedType::kQInt8},
    {"torch.QUInt8Storage", "torch.quint8", QuantizedType::kQUInt8},
    {"torch.QInt32Storage", "torch.qint32", QuantizedType::kQInt32},
    {"torch.QUInt4x2Storage", "torch.quint4x2", QuantizedType::kQUInt4x2},
};

// Makes errors about the contents of a file start with its name.
template <class Fn>
Value read(const std::string& source, Fn&& fn) {
  try {
    return fn();
  } catch (const Error& error) {
    throw Error(error.code() == ErrorCode::kInvalidArgument ? ErrorCode::kDataLoss : error.code(),
                concat(source, ": ", error.what()));
  }
}

}  // namespace

// Empty if the name does not belong to quantized tensors. Schemes and dtypes become their numbers, as in code. Files of
// torch.save have no classes, and quantized tensors are not supported in them.
std::optional<Value> Unpickler::quantized_global(const std::string& name) {
  const auto make = [&](Call call) { return make_intrusive<Global>(name, call); };
  const auto give = [](const IntrusivePtr<Global>& global) { return Value(IntrusivePtr<ops::OpaqueObject>(global)); };
  std::optional<Value> found;
  if (name == "torch._utils._rebuild_qtensor") found = give(make(&Unpickler::call_quantized));
  for (const Scheme& scheme : kSchemes) {
    if (name == scheme.name) found = Value(static_cast<int64_t>(scheme.number));
  }
  for (const Element& element : kElements) {
    if (name == element.dtype) found = Value(static_cast<int64_t>(element.type));
    if (name != element.storage) continue;
    auto storage = make(nullptr);
    storage->storage_dtype = static_cast<int>(ops::storage_dtype(element.type));
    storage->quantized = element.type;
    found = give(storage);
  }
  if (found && !context_.find_type) {
    fail(ErrorCode::kUnimplemented, context_.source, ": quantized tensors are not supported (", name, ")");
  }
  return found;
}

// (scheme, scale, zero point) or (scheme, scales, zero points, axis).
Quantizer Unpickler::to_quantizer(const Value& value) const {
  if (!value.is_tuple() || value.to_tuple()->items.size() < 3) malformed("a quantizer has the wrong form");
  const std::vector<Value>& items = value.to_tuple()->items;
  Quantizer out;
  if (!items[0].is_int()) malformed("a quantizer has no scheme");
  out.scheme = static_cast<QuantizationScheme>(items[0].to_int());
  switch (out.scheme) {
    case QuantizationScheme::kPerTensorAffine:
      if (!items[1].is_float() || !items[2].is_int()) malformed("a quantizer has no scale and zero point");
      out.scale = items[1].to_float();
      out.zero_point = items[2].to_int();
      return out;
    case QuantizationScheme::kPerChannelAffine:
    case QuantizationScheme::kPerChannelFloatQParams:
      if (items.size() < 4 || !items[1].is_strided() || !items[2].is_strided() || !items[3].is_int())
        malformed("a quantizer has no scales, zero points and axis");
      out.scales = items[1].to_tensor().contiguous();
      out.zero_points = items[2].to_tensor().contiguous();
      out.axis = items[3].to_int();
      return out;
  }
  malformed("a quantizer has an unknown scheme");
}

// (storage, offset, sizes, strides, quantizer, requires_grad, hooks)
Value Unpickler::call_quantized(const Global& callee, std::span<const Value> arguments) {
  const auto* ref = as<StorageRef>(argument(callee, arguments, 0));
  const Value& offset = argument(callee, arguments, 1);
  if (!ref || !ref->quantized || !offset.is_int()) malformed("a quantized tensor has no storage");
  Dims sizes = to_dims(argument(callee, arguments, 2), "sizes");
  Dims strides = to_dims(argument(callee, arguments, 3), "strides");
  spend(16);
  Quantizer quantizer = to_quantizer(argument(callee, arguments, 4));
  return read(context_.source, [&]() -> Value {
    int64_t columns = -1;
    // Each byte holds two columns, and each row takes whole bytes.
    if (*ref->quantized == QuantizedType::kQUInt4x2) {
      check(!sizes.empty() && offset.to_int() == 0 && is_contiguous(sizes, strides), "a quint4x2 tensor is not dense");
      columns = sizes.back();
      sizes.back() = columns / 2 + columns % 2;
      strides = contiguous_strides(sizes);
    }
    Tensor values = Tensor::from_storage(ref->storage, sizes, strides, offset.to_int(), ref->dtype);
    viewed_.add(values, context_.source);
    auto made = make_intrusive<ops::QuantizedTensor>(*ref->quantized, std::move(values), std::move(quantizer), columns);
    made->is_of_module = true;
    return Value(Tensor(made));
  });
}

// Builds the object on top of the stack from its state, which is not needed afterwards.
void Unpickler::build_custom(const Value& state) {
  const std::string name = top().to_opaque()->class_name();
  spend(16);
  top() = read(context_.source, [&] { return Value((*ops::find_custom_class(name))(state)); });
}

}  // namespace tensord::jit
