#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/autograd/gradcheck.h"
#include "core/tensor/tensor.h"

// Derivatives of functions of tensors, by backward passes: the names, and what they give, are those of
// torch.autograd.functional. Functions get copies of the inputs that require gradients, may be called with grad mode
// off, and must give floating tensors. Results that do not depend on an input have zeros there. Nothing here changes
// grad() of a leaf.
namespace tensord::autograd {

// Gives a tensor of one element.
using ScalarFunction = std::function<Tensor(const std::vector<Tensor>& inputs)>;

struct FunctionProduct {
  std::vector<Tensor> outputs;  // of the function
  std::vector<Tensor> product;
};

// `v` has a tensor for each output, of its sizes; the product one for each input. Throws Error{kInvalidArgument} where
// numbers or sizes differ. With `create_graph` results can be differentiated again, through `inputs` that require it.
FunctionProduct vjp(const TensorFunction& function, std::span<const Tensor> inputs, std::span<const Tensor> v,
                    bool create_graph = false);
// Forward mode: `v` has a tensor for each input, the product one for each output. Made of two backward passes, as
// PyTorch's: the vector-Jacobian product is linear in its vector, and its derivative there is this.
FunctionProduct jvp(const TensorFunction& function, std::span<const Tensor> inputs, std::span<const Tensor> v,
                    bool create_graph = false);
// [output][input], of the output's sizes followed by the input's: one backward pass for each element of the outputs.
std::vector<std::vector<Tensor>> jacobian(const TensorFunction& function, std::span<const Tensor> inputs,
                                          bool create_graph = false);
// [input][input], of the first's sizes followed by the second's.
std::vector<std::vector<Tensor>> hessian(const ScalarFunction& function, std::span<const Tensor> inputs,
                                         bool create_graph = false);
// The product of the Hessian and `v`, which has a tensor for each input; outputs are the function's one.
FunctionProduct hvp(const ScalarFunction& function, std::span<const Tensor> inputs, std::span<const Tensor> v,
                    bool create_graph = false);

}  // namespace tensord::autograd
