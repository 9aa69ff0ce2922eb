#pragma once

#include <string_view>

#include "core/ops/value.h"

namespace tensord::kernels {

// The largest finite number of a floating point dtype.
double largest(DType dtype);
// Whether the dtype can represent the number, truncated to an integer if necessary. As in PyTorch, uint8 includes
// negative numbers of its magnitude (they wrap around), bool includes every real number, and infinities do not
// overflow.
bool holds(DType dtype, const ops::Scalar& value);
// Throws Error{kInvalidArgument} if it cannot.
void check_holds(std::string_view op, DType dtype, const ops::Scalar& value);

}  // namespace tensord::kernels
