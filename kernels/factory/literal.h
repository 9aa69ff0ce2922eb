#pragma once

#include "core/ops/value.h"

// Numbers between nested lists and tensors of the processor.
namespace tensord::kernels {

// Throws Error where a list inside is of another length than the tensor's dimension.
void read_list(const ops::Value& list, const Tensor& out);
ops::Value nested_list_of(const Tensor& x);

}  // namespace tensord::kernels
