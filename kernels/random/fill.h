#pragma once

#include "core/tensor/tensor.h"

// Draws on the processor that operators of several files make.
namespace tensord::kernels {

// int64: the numbers below n, each once.
Tensor shuffled_numbers(int64_t n);
// Positions by the running sum of each row of weights, one uniform number each; sums are of the weights' type. Both are
// dense.
void draw_positions(const Tensor& weights, const Tensor& positions);

}  // namespace tensord::kernels
