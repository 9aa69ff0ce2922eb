#pragma once

#include <span>
#include <vector>

#include "core/tensor/tensor.h"

// Conversions between tensors and lists of numbers that determine shapes: lengths, offsets and the like.
namespace tensord::kernels {

// The elements of a tensor on any device, in row-major order, as int64.
std::vector<int64_t> integers_of(const Tensor& x);
// The same for a tensor of float32.
std::vector<float> floats_of(const Tensor& x);
// int64 [values], on the CPU.
Tensor vector_of(std::span<const int64_t> values);

}  // namespace tensord::kernels
