#pragma once

#include "core/autograd/meta.h"
#include "core/autograd/node.h"

// Views and in-place writes: the effect of a write through one tensor on the history of others over the same memory.
namespace tensord::autograd {

// Tracks `result`, which an operator returned as a view of `source`.
void track_view(const Tensor& source, const Tensor& result, Creation creation);

// The node of a view, made anew from its base if the memory was written in the meantime. Throws Error for views that
// must not be written (see Creation).
NodePtr refresh(const Tensor& tensor, ViewState& view);

// Refuses in-place writes that autograd cannot follow: to a leaf that requires a gradient, to a view of one, to views
// of certain origins.
void check_write(const Tensor& tensor);

// After an in-place write, `tensor` is result `output_nr` of `node`, whose edge `edge` leads to the history of the
// overwritten tensor. For a view, its base gets a node that puts the part into the whole.
void rebase_history(const Tensor& tensor, NodePtr node, uint32_t output_nr = 0, size_t edge = 0);

// Adds the gradient of a node's result to `slot` whenever the node runs.
void retain_in(Node& node, uint32_t result, IntrusivePtr<GradSlot> slot);
// Undoes retain_in.
void release_retained(Node& node, const GradSlot& slot);

}  // namespace tensord::autograd
