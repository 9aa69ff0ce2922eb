#pragma once

#include <string>

#include "core/tensor/tensor.h"

// Small calculations with gradients, made with operators so that they are recorded when asked for.
namespace tensord::autograd {

Tensor sum_of(const Tensor& a, const Tensor& b);
Tensor copy_of(const Tensor& gradient);
bool has_nan(const Tensor& gradient);

// Adds `gradient` to `total`. Written in place when nothing else uses `total` and nothing is recorded.
void add_gradient(Tensor& total, Tensor gradient);

// Whether it has the sizes, dtype and device of `like` (meta).
bool fits(const Tensor& gradient, const Tensor& like);
// Makes it fit: sums over what broadcasting repeated, and converts. Says what is wrong when that cannot be.
std::string fit_gradient(Tensor& gradient, const Tensor& like);

}  // namespace tensord::autograd
