#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/tensor/tensor.h"

// Compares gradients with finite differences.
namespace tensord::autograd {

using TensorFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;

struct GradcheckOptions {
  double eps = 1e-6;   // step of the differences
  double atol = 1e-5;  // |numerical - analytical| <= atol + rtol * |numerical|
  double rtol = 1e-3;
  // How much two passes over one graph may differ.
  double nondet_tol = 0;
  // Whether also to try gradients that do not flow, which must count as zeros.
  bool checks_undefined_grad = true;
};

// Checks d outputs / d inputs of `function` element by element, for inputs that require a gradient and outputs
// that have one. Inputs must be float64, with memory of their own for every element; they are written and
// restored. Throws Error{kFailedPrecondition} that names output and input and shows both Jacobians where they
// differ.
void gradcheck(const TensorFunction& function, const std::vector<Tensor>& inputs, GradcheckOptions options = {});

// The same for the gradients themselves, as functions of the inputs and of what flows in:
// `grad_outputs` by output of `function`, made up when empty.
void gradgradcheck(const TensorFunction& function, const std::vector<Tensor>& inputs,
                   const std::vector<Tensor>& grad_outputs = {}, GradcheckOptions options = {});

}  // namespace tensord::autograd
