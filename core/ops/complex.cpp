#include "core/ops/complex.h"

#include <utility>

#include "core/base/error.h"
#include "core/ops/run.h"
#include "core/tensor/complex.h"
#include "ops/pointwise.h"

namespace tensord::ops {
namespace {

bool is_complex_tensor(const Value& value) {
  if (!value.is_tensor()) return value.is_complex();
  const DType dtype = value.to_tensor().dtype();
  return dtype == DType::kComplex64 || dtype == DType::kComplex128;
}

Value conjugate(const Value& value) {
  if (value.is_tensor()) {
    const Tensor& tensor = value.to_tensor();
    return is_complex(tensor.dtype()) ? Value(ops::conj(tensor)) : value;
  }
  if (!value.is_list()) return value;
  std::vector<Value> items;
  for (const Value& item : value.to_list()->items) items.push_back(conjugate(item));
  return make_list(value.to_list()->element, std::move(items));
}

// A formula that skips dtypes that are not floating must not drop a gradient.
std::vector<Value> checked(const Op& op, const GradArgs& args, std::vector<Value> found) {
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    if (!args.needs(i) || !args.inputs[i].is_tensor() || !is_complex(args.inputs[i].to_tensor().dtype())) continue;
    if (i < found.size() && found[i].is_tensor()) continue;
    if (op.is_view && i > 0) continue;  // only its shape is read, as of expand_as's other
    fail(ErrorCode::kUnimplemented, "derivative for ", op.schema.full_name(), " of complex tensors is not implemented");
  }
  return found;
}

}  // namespace

bool has_complex(std::span<const Value> values) {
  for (const Value& value : values) {
    if (is_complex_tensor(value)) return true;
    if (!value.is_list()) continue;
    const ListObject& list = *value.to_list();
    if (list.element->kind() == TypeKind::kInt) continue;
    for (const Value& item : list.items) {
      if (is_complex_tensor(item)) return true;
    }
  }
  return false;
}

Tensor tensor_of(const Scalar& value) {
  if (value.is_complex()) {
    const Tensor out = Tensor::empty({}, DType::kComplex128);
    *out.data<Complex128>() = value.to_complex();
    return out;
  }
  if (value.is_float()) return Tensor::scalar(value.to_double());
  return value.is_bool() ? Tensor::scalar(value.to_bool()) : Tensor::scalar(value.to_int());
}

std::vector<Value> complex_gradient(const Op& op, const GradArgs& args) {
  switch (op.complex_rule) {
    case ComplexGradient::kLinear: return checked(op, args, op.gradient(args));
    case ComplexGradient::kOwn: return op.complex_gradient(args);
    case ComplexGradient::kHolomorphic: {
      std::vector<Tensor> turned;
      for (const Tensor& gradient : args.grad_outputs) {
        turned.push_back(gradient.defined() ? conjugate(gradient).to_tensor() : gradient);
      }
      std::vector<Value> found = op.gradient({args.inputs, args.outputs, turned, args.needed});
      for (Value& gradient : found) gradient = conjugate(gradient);
      return checked(op, args, std::move(found));
    }
    case ComplexGradient::kOfCalls:
    case ComplexGradient::kNone: break;
  }
  fail(ErrorCode::kUnimplemented, "derivative for ", op.schema.full_name(), " of complex tensors is not implemented");
}

}  // namespace tensord::ops
