#include <cmath>
#include <limits>

#include "kernels/expr/expr.h"
#include "kernels/factory/literal.h"
#include "kernels/pointwise/scalar_math.h"
#include "ops/factory.h"
#include "ops/view.h"

// torch.tensor(…) and as_tensor of numbers and nested lists, and the way back: tolist.
namespace tensord::kernels {
namespace {

using ops::List;
using ops::Scalar;
using ops::Value;
using OptDType = std::optional<DType>;
using OptDevice = std::optional<Device>;

constexpr int kMaxNesting = 64;

Tensor placed(const Tensor& x, OptDType dtype, OptDevice device) {
  Tensor out = x.to(dtype.value_or(x.dtype()));
  if (!device || *device == Device{}) return out;
  return ops::to(out, *device, out.dtype());
}

// A float takes the default dtype first, and then another one if that was asked for.
Tensor from_number(const Scalar& value, OptDType dtype, OptDevice device) {
  if (value.is_bool()) return placed(Tensor::scalar(value.to_bool()), dtype, device);
  if (value.is_int()) return placed(Tensor::scalar(value.to_int()), dtype, device);
  const double number = value.to_double();
  check(!std::isfinite(number) || std::abs(number) <= std::numeric_limits<float>::max(),
        "value cannot be converted to type float without overflow");
  return placed(Tensor::scalar(number).to(DType::kFloat32), dtype.value_or(DType::kFloat32), device);
}

// The shape of a nested list, from its first items; reading it checks the rest.
Dims nested_shape(const Value& value) {
  Dims shape;
  const Value* at = &value;
  while (at->is_list()) {
    check(shape.size() < kMaxNesting, "tensor: the list is nested too deeply");
    shape.push_back(static_cast<int64_t>(at->to_list()->items.size()));
    if (at->to_list()->items.empty()) break;
    at = &at->to_list()->items[0];
  }
  return shape;
}

// The type of the numbers at the bottom, from the declared element type, so that an empty list has one too.
DType nested_dtype(const Value& value) {
  const ops::Type* type = value.to_list()->element.get();
  while (type && type->kind() == ops::TypeKind::kList) type = type->element().get();
  if (type && type->kind() == ops::TypeKind::kInt) return DType::kInt64;
  if (type && type->kind() == ops::TypeKind::kBool) return DType::kBool;
  if (type && type->kind() == ops::TypeKind::kFloat) return DType::kFloat64;
  const Value* at = &value;
  while (at->is_list() && !at->to_list()->items.empty()) at = &at->to_list()->items[0];
  if (at->is_tensor()) return at->to_tensor().dtype();
  return at->is_int() ? DType::kInt64 : at->is_bool() ? DType::kBool : DType::kFloat64;
}

Tensor from_list(const List& list, OptDType dtype, OptDevice device) {
  const Value value(list);
  const Dims shape = nested_shape(value);
  const DType natural = nested_dtype(value);
  const bool is_float = is_floating(natural);
  const Tensor wide = Tensor::empty(shape, is_float                  ? DType::kFloat64
                                           : natural == DType::kBool ? DType::kBool
                                                                     : DType::kInt64);
  read_list(value, wide);
  return placed(wide, dtype.value_or(is_float ? DType::kFloat32 : natural), device);
}

// prim::tolist(x, dimensions, element type), whose types are numbered as in libtorch: 0 int, 1 float, 3 bool.
Value to_list(const Tensor& x, int64_t dimensions, int64_t type) {
  if (x.is_meta()) fail(ErrorCode::kUnimplemented, "tolist: the tensor has no data to read");
  check(x.ndim() == dimensions,
        "Output annotation list dimension and runtime tensor dimension must match for tolist()");
  const bool matches = type == 0   ? is_integral(x.dtype(), false)
                       : type == 1 ? is_floating(x.dtype())
                                   : type == 3 && x.dtype() == DType::kBool;
  check(matches, "Output annotation element type and runtime tensor element type must match for tolist()");
  const Tensor host = x.device().kind == DeviceKind::kCPU ? x : ops::to(x, Device{}, x.dtype());
  return nested_list_of(host);
}

OP("aten::tensor.float").impl([](double value, OptDType dtype, OptDevice device, bool) {
  return from_number(value, dtype, device);
});
OP("aten::tensor.int").impl([](int64_t value, OptDType dtype, OptDevice device, bool) {
  return from_number(value, dtype, device);
});
OP("aten::tensor.bool").impl([](bool value, OptDType dtype, OptDevice device, bool) {
  return from_number(value, dtype, device);
});
OP("aten::tensor.complex").impl([](const Value& value, OptDType dtype, OptDevice device, bool) {
  return placed(ops::full(Dims{}, value.to_scalar(), {.dtype = dtype.value_or(DType::kComplex64)}), dtype, device);
});
OP("aten::tensor").impl([](const List& list, OptDType dtype, OptDevice device, bool) {
  return from_list(list, dtype, device);
});
OP("aten::as_tensor")
    .impl([](const Tensor& x, OptDType dtype, OptDevice device) {
      const bool moves = device && *device != x.device();
      if (x.is_meta() && moves) return Tensor::meta_strided(x.sizes(), x.strides(), dtype.value_or(x.dtype()), *device);
      return moves ? ops::to(x, *device, dtype.value_or(x.dtype())) : x.to(dtype.value_or(x.dtype()));
    })
    .gradient(gradient::of_first([](const ops::GradArgs& args, const Tensor& g) {
      const Tensor& x = args.inputs[0].to_tensor();
      return ops::to(g, x.device(), x.dtype());
    }))
    .saves("")
    .kind(ops::OpKind::kComposite);
OP("aten::as_tensor.float").impl([](double value, OptDType dtype, OptDevice device) {
  return from_number(value, dtype, device);
});
OP("aten::as_tensor.int").impl([](int64_t value, OptDType dtype, OptDevice device) {
  return from_number(value, dtype, device);
});
OP("aten::as_tensor.bool").impl([](bool value, OptDType dtype, OptDevice device) {
  return from_number(value, dtype, device);
});
OP("aten::as_tensor.list").impl([](const List& list, OptDType dtype, OptDevice device) {
  return from_list(list, dtype, device);
});
OP("prim::tolist").impl(to_list);

}  // namespace
}  // namespace tensord::kernels
