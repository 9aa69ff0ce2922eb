#pragma once

#include "core/ops/value.h"

// Fillings that operators of several files draw. Each is in place, and gives its tensor.
namespace tensord::kernels {

Tensor fill_uniform(const Tensor& x, double from, double to, const ops::Value& generator);
Tensor fill_normal(const Tensor& x, double mean, double deviation, const ops::Value& generator);
// Whole numbers of [low, high).
Tensor fill_random(const Tensor& x, int64_t low, int64_t high);
// int64: the numbers below n, each once.
Tensor shuffled_numbers(int64_t n);

}  // namespace tensord::kernels
