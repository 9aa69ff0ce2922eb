#pragma once

#include <string>

#include "core/tensor/tensor.h"

// Small computations on gradients, made of operators so that they can be recorded.
namespace tensord::autograd {

Tensor sum_of(const Tensor& a, const Tensor& b);
Tensor copy_of(const Tensor& gradient);
bool has_nan(const Tensor& gradient);

// Adds `gradient` to `total`, in place if nothing else uses `total` and nothing is recorded.
void add_gradient(Tensor& total, Tensor gradient);

// Whether it has the sizes, dtype and device of `like` (meta).
bool fits(const Tensor& gradient, const Tensor& like);
// Makes the gradient fit: sums over broadcast dimensions, and converts. Returns a message if that is impossible.
std::string fit_gradient(Tensor& gradient, const Tensor& like);

}  // namespace tensord::autograd
