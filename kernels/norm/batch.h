#pragma once

#include <span>

#include "kernels/pointwise/pointwise.h"

namespace tensord::kernels {

// aten::batch_norm as an elementwise call. With constant statistics it is one formula; otherwise a call of no operands,
// which says so.
PointwiseCall batch_norm_call(std::span<const ops::Value> v);

}  // namespace tensord::kernels
