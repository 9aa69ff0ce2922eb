#pragma once

#include <functional>
#include <string>

#include "core/tensor/tensor.h"

// Small calculations with gradients, made with operators so that they are recorded when asked for.
namespace tensord::autograd {

Tensor sum_of(const Tensor& a, const Tensor& b);
Tensor copy_of(const Tensor& gradient);
bool has_nan(const Tensor& gradient);

// Adds `gradient` to `total`. Written in place when nothing else uses `total` and nothing is recorded.
void add_gradient(Tensor& total, Tensor gradient);

// Sums `gradient` over what broadcasting repeated and converts it, so that it fits `like` (meta). Throws
// Error with `describe` of what is wrong when it cannot.
void fit_gradient(Tensor& gradient, const Tensor& like, const std::function<std::string(const std::string&)>& describe);

}  // namespace tensord::autograd
