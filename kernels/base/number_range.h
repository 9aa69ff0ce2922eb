#pragma once

#include <string_view>

#include "core/ops/value.h"

namespace tensord::kernels {

// The largest finite number of a floating point dtype.
double largest(DType dtype);
// Whether the dtype has the number, cut to an integer where it needs that. As in PyTorch, uint8 has negative numbers of
// its size too (they wrap around), bool has every real number, and infinities are no overflow.
bool holds(DType dtype, const ops::Scalar& value);
// Throws Error{kInvalidArgument} unless it does.
void check_holds(std::string_view op, DType dtype, const ops::Scalar& value);

}  // namespace tensord::kernels
