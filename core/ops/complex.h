#pragma once

#include <span>
#include <vector>

#include "core/ops/op.h"

namespace tensord::ops {

// Whether a tensor among the values (lists flattened) or a number is complex.
bool has_complex(std::span<const Value> values);
// A 0-d tensor with the number's own dtype: bool, int64, float64 or complex128.
Tensor tensor_of(const Scalar& value);
// The operator's gradient if a value of the call, or an incoming gradient, is complex.
std::vector<Value> complex_gradient(const Op& op, const GradArgs& args);

}  // namespace tensord::ops
