#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/autograd/gradcheck.h"
#include "core/tensor/tensor.h"

// Derivatives of functions of tensors by backward passes, with the names and results of torch.autograd.functional. The
// functions get copies of the inputs that require gradients, may be called with grad mode off, and must return floating
// tensors. Results are zero for inputs that the function does not depend on. grad() of leaves does not change.
namespace tensord::autograd {

// Returns a tensor with one element.
using ScalarFunction = std::function<Tensor(const std::vector<Tensor>& inputs)>;

struct FunctionProduct {
  std::vector<Tensor> outputs;  // of the function
  std::vector<Tensor> product;
};

// `v` has a tensor for each output, of its sizes; the product has one for each input. Throws Error{kInvalidArgument} if
// numbers or sizes differ. With `create_graph`, results can be differentiated again with respect to `inputs` that
// require gradients.
FunctionProduct vjp(const TensorFunction& function, std::span<const Tensor> inputs, std::span<const Tensor> v,
                    bool create_graph = false);
// Forward mode: `v` has a tensor for each input, the product one for each output. Computed by two backward passes, as
// in PyTorch: the vector-Jacobian product is linear in its vector, and this is its derivative.
FunctionProduct jvp(const TensorFunction& function, std::span<const Tensor> inputs, std::span<const Tensor> v,
                    bool create_graph = false);
// [output][input], with the output's sizes followed by the input's: one backward pass for each element of the outputs.
std::vector<std::vector<Tensor>> jacobian(const TensorFunction& function, std::span<const Tensor> inputs,
                                          bool create_graph = false);
// [input][input], with the first input's sizes followed by the second's.
std::vector<std::vector<Tensor>> hessian(const ScalarFunction& function, std::span<const Tensor> inputs,
                                         bool create_graph = false);
// The product of the Hessian and `v`, which has a tensor for each input; `outputs` has the value of the function.
FunctionProduct hvp(const ScalarFunction& function, std::span<const Tensor> inputs, std::span<const Tensor> v,
                    bool create_graph = false);

}  // namespace tensord::autograd
