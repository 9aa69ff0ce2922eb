#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/autograd/node.h"
#include "core/tensor/tensor.h"

// Autograd's state of tensors, with PyTorch's names and meaning. A tensor carries none until it is needed. As
// thread-safe as the tensor itself.
namespace tensord::autograd {

// Whether a gradient is computed for it: it is a leaf that requires one, or was computed from such a leaf.
bool requires_grad(const Tensor& tensor);
// Throws Error for a tensor that is not a leaf (if `value` is false), is not floating, or was made in inference mode.
void set_requires_grad(const Tensor& tensor, bool value = true);
bool is_leaf(const Tensor& tensor);

// The gradient accumulated in a leaf, or in a tensor that retain_grad was called on; undefined before the first
// backward pass.
Tensor grad(const Tensor& tensor);
// The gradient must have the tensor's sizes, dtype and device; undefined clears it.
void set_grad(const Tensor& tensor, const Tensor& gradient);

// The node that computed it (null for a leaf), and the index of the result.
NodePtr grad_fn(const Tensor& tensor);
uint32_t output_nr(const Tensor& tensor);
// Where its gradient flows: grad_fn and output_nr; for a leaf its accumulator; an empty edge if it does not require
// one.
Edge gradient_edge(const Tensor& tensor);

// A tensor over the same memory and version counter without history; it does not require a gradient.
Tensor detach(const Tensor& tensor);
// Makes it a leaf that does not require a gradient. Throws Error for a view: its base would keep its history.
void detach_in_place(const Tensor& tensor);
// Keeps the gradient of a tensor that is not a leaf, see grad().
void retain_grad(const Tensor& tensor);
bool retains_grad(const Tensor& tensor);

// Whether it is a view that autograd tracks, and its base.
bool is_view(const Tensor& tensor);
Tensor base_of(const Tensor& view);

// Called with the gradient of the tensor before it flows on; a defined result replaces it.
using TensorHook = std::function<Tensor(const Tensor& gradient)>;
HookHandle register_hook(const Tensor& tensor, TensorHook hook);

}  // namespace tensord::autograd
