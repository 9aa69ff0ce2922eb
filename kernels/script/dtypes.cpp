// Questions about dtypes that scripts ask: what two tensors or numbers promote to, what may be cast.
#include "core/ops/op.h"
#include "kernels/pointwise/pointwise.h"

namespace tensord::kernels {
namespace {

using ops::Scalar;

int64_t result_type(const Operand& a, const Operand& b) {
  return static_cast<int64_t>(promote_operands(std::array{a, b}));
}

// bool < integers < floating point < complex: a value is cast down only by an explicit conversion.
int category(DType dtype) {
  return dtype == DType::kBool ? 0 : is_integral(dtype, false) ? 1 : is_complex(dtype) ? 3 : 2;
}

OP("aten::result_type.Tensor").impl([](const Tensor& a, const Tensor& b) { return result_type(a, b); });
OP("aten::result_type.Scalar").impl([](const Tensor& a, const Scalar& b) { return result_type(a, b); });
OP("aten::result_type.Scalar_Tensor").impl([](const Scalar& a, const Tensor& b) { return result_type(a, b); });
OP("aten::promote_types").impl([](DType a, DType b) { return static_cast<int64_t>(promote_types(a, b)); });
OP("aten::can_cast").impl([](DType from, DType to) { return category(from) <= category(to); });

}  // namespace
}  // namespace tensord::kernels
