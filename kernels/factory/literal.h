#pragma once

#include "core/ops/value.h"

// Conversions between nested lists of numbers and CPU tensors.
namespace tensord::kernels {

// Throws Error if the length of a nested list differs from the tensor's dimension.
void read_list(const ops::Value& list, const Tensor& out);
ops::Value nested_list_of(const Tensor& x);

}  // namespace tensord::kernels
