#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/autograd/node.h"
#include "core/tensor/tensor.h"

// What autograd knows of a tensor. Names and meaning are PyTorch's. A tensor that none of this
// was asked of carries nothing. Thread-safety: as for the tensor itself.
namespace tensord::autograd {

// Whether a gradient is computed for it: it is a leaf that asked for one, or came of such.
bool requires_grad(const Tensor& tensor);
// Throws Error for a tensor that is no leaf (when `value` is false), whose dtype is not floating,
// or that was made in inference mode.
void set_requires_grad(const Tensor& tensor, bool value = true);
bool is_leaf(const Tensor& tensor);

// The gradient accumulated in a leaf, or in a tensor that retain_grad was called on; undefined
// before the first backward.
Tensor grad(const Tensor& tensor);
// Sizes, dtype and device must be the tensor's own; undefined clears it.
void set_grad(const Tensor& tensor, const Tensor& gradient);

// The node that computed it, null for a leaf; and which of its results it is.
NodePtr grad_fn(const Tensor& tensor);
uint32_t output_nr(const Tensor& tensor);
// Where its gradient goes: grad_fn and output_nr, for a leaf its accumulator, an empty edge when
// it requires none.
Edge gradient_edge(const Tensor& tensor);

// The same memory and version counter, with no past: not recorded, requires no gradient.
Tensor detach(const Tensor& tensor);
// Makes it a leaf that requires no gradient. Throws Error for a view: its base would still have a past.
void detach_in_place(const Tensor& tensor);
// Keeps the gradient of a tensor that is no leaf, see grad().
void retain_grad(const Tensor& tensor);
bool retains_grad(const Tensor& tensor);

// Whether it is a view that autograd tracks, and of what.
bool is_view(const Tensor& tensor);
Tensor base_of(const Tensor& view);

// Called with the gradient of the tensor before it goes on; a defined result replaces it.
using TensorHook = std::function<Tensor(const Tensor& gradient)>;
HookHandle register_hook(const Tensor& tensor, TensorHook hook);

}  // namespace tensord::autograd
