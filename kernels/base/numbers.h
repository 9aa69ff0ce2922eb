#pragma once

#include <span>
#include <vector>

#include "core/tensor/tensor.h"

// Numbers on their way between tensors and lists: lengths, offsets and the like, which decide on shapes.
namespace tensord::kernels {

// The elements of a tensor on any device, row by row, as int64.
std::vector<int64_t> integers_of(const Tensor& x);
// The same of a tensor of float32.
std::vector<float> floats_of(const Tensor& x);
// int64 [values], on the processor.
Tensor vector_of(std::span<const int64_t> values);

}  // namespace tensord::kernels
