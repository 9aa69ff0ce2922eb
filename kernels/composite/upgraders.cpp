#include "core/ops/op.h"
#include "core/ops/run.h"
#include "ops/pointwise.h"

// Operators with the meaning that they had in older archives, which the front end calls for those. PyTorch calls them
// upgraders too.
namespace tensord::kernels {
namespace {

using ops::Scalar;
using ops::Value;

// Before version 4, int / int was an int, rounded towards zero.
bool divides_ints(const Tensor& self, bool other_is_float) { return !is_floating(self.dtype()) && !other_is_float; }

Tensor div_tensor(const Tensor& self, const Tensor& other) {
  if (!divides_ints(self, is_floating(other.dtype()))) return ops::div(self, other);
  return ops::div(self, other, {.rounding_mode = std::string("trunc")});
}
Tensor div_scalar(const Tensor& self, const Scalar& other) {
  if (!divides_ints(self, other.is_float())) return ops::div(self, other);
  return ops::div(self, other, {.rounding_mode = std::string("trunc")});
}
Tensor div_tensor_(const Tensor& self, const Tensor& other) {
  if (!divides_ints(self, is_floating(other.dtype()))) return ops::div_(self, other);
  return ops::div_(self, other, {.rounding_mode = std::string("trunc")});
}
Tensor div_scalar_(const Tensor& self, const Scalar& other) {
  if (!divides_ints(self, other.is_float())) return ops::div_(self, other);
  return ops::div_(self, other, {.rounding_mode = std::string("trunc")});
}

// Before version 5, a fill value without a dtype became a float.
Tensor full(const Dims& size, const Scalar& number, std::optional<DType> dtype, const Value& layout,
            const Value& device, const Value& pin_memory) {
  const Value fill = dtype || number.is_complex() ? Value(number) : Value(number.to_double());
  return ops::call_by_name("aten::full", size, fill, dtype ? Value(*dtype) : Value(), layout, device, pin_memory);
}

OP("upgraders::div.Tensor").impl(div_tensor).composite();
OP("upgraders::div.Scalar").impl(div_scalar).composite();
OP("upgraders::div_.Tensor").impl(div_tensor_).composite();
OP("upgraders::div_.Scalar").impl(div_scalar_).composite();
OP("upgraders::full").impl(full).composite();

}  // namespace
}  // namespace tensord::kernels
