#pragma once

#include <span>

#include "kernels/pointwise/pointwise.h"

namespace tensord::kernels {

// aten::batch_norm as an elementwise call. With constant statistics it is one formula; otherwise a call without
// operands, which means that it is not elementwise.
PointwiseCall batch_norm_call(std::span<const ops::Value> v);

}  // namespace tensord::kernels
