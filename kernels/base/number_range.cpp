#include "kernels/base/number_range.h"

#include <cmath>
#include <limits>

#include "core/base/error.h"

namespace tensord::kernels {

double largest(DType dtype) {
  switch (dtype) {
    case DType::kFloat16: return 65504.0;
    case DType::kBFloat16: return 3.38953138925153547590e38;
    case DType::kFloat32: return std::numeric_limits<float>::max();
    default: return std::numeric_limits<double>::max();
  }
}

bool holds(DType dtype, const ops::Scalar& value) {
  if (is_complex(dtype) || dtype == DType::kBool) return true;
  if (value.is_complex() && value.to_complex().imag() != 0) return false;
  const double number = value.to_complex().real();
  if (is_floating(dtype)) return !std::isfinite(number) || std::abs(number) <= largest(dtype);
  if (dtype == DType::kInt64 && (value.is_int() || value.is_bool())) return true;
  const bool is_unsigned = dtype == DType::kUInt8;
  const double limit = std::ldexp(1.0, static_cast<int>(8 * size_of(dtype)) - (is_unsigned ? 0 : 1));
  const double whole = std::trunc(number);
  return whole < limit && whole >= (is_unsigned ? 1 - limit : -limit);
}

void check_holds(std::string_view op, DType dtype, const ops::Scalar& value) {
  check(holds(dtype, value), op, ": value cannot be converted to type ", name_of(dtype), " without overflow");
}

}  // namespace tensord::kernels
