#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/tensor/tensor.h"

// Compares gradients with finite differences.
namespace tensord::autograd {

using TensorFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;

struct GradcheckOptions {
  double eps = 1e-6;   // step size of the differences
  double atol = 1e-5;  // |numerical - analytical| <= atol + rtol * |numerical|
  double rtol = 1e-3;
  // The largest difference between two passes over one graph.
  double nondet_tol = 0;
  // Whether to check that undefined gradients count as zeros.
  bool checks_undefined_grad = true;
};

// Checks d outputs / d inputs of `function` element by element, for inputs that require gradients and outputs that have
// one. Inputs must be float64, with separate memory for each element; they are written and restored. Throws
// Error{kFailedPrecondition} that names the output and the input and shows both Jacobians.
void gradcheck(const TensorFunction& function, const std::vector<Tensor>& inputs, GradcheckOptions options = {});

// The same for the gradients, as functions of the inputs and of the incoming gradients: `grad_outputs` by output of
// `function`; generated if empty.
void gradgradcheck(const TensorFunction& function, const std::vector<Tensor>& inputs,
                   const std::vector<Tensor>& grad_outputs = {}, GradcheckOptions options = {});

}  // namespace tensord::autograd
