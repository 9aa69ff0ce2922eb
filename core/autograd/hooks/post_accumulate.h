#pragma once

#include <functional>

#include "core/autograd/node.h"
#include "core/tensor/tensor.h"

namespace tensord::autograd {

// Called when a gradient was added to a leaf, by a pass of backward(). `parameter` has the leaf's memory and its
// gradient (grad() and set_grad() are the leaf's), so that an optimizer's step and the end of the gradient may be done
// there, before the gradients of other leaves are made. May run on another thread. Not for grad(), which adds to no
// leaf.
using PostAccumulateGradHook = std::function<void(const Tensor& parameter)>;
// Throws Error{kInvalidArgument} of a tensor that is not a leaf, or requires no gradient.
HookHandle register_post_accumulate_grad_hook(const Tensor& leaf, PostAccumulateGradHook hook);

}  // namespace tensord::autograd
