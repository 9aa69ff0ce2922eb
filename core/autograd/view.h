#pragma once

#include "core/autograd/meta.h"
#include "core/autograd/node.h"

// Views and in-place writes: what a write through one tensor means for the history of others that
// lie over the same memory.
namespace tensord::autograd {

// Tracks `result`, which an operator gave as a view of `source`.
void track_view(const Tensor& source, const Tensor& result, Creation creation);

// The node of a view, made anew from its base when the memory was written since. Throws Error for
// views that must not be written (see Creation).
NodePtr refresh(const Tensor& tensor, ViewState& view);

// Refuses in-place writes that autograd cannot follow: to a leaf that requires a gradient, to a view
// of one, to views that came about in certain ways.
void check_write(const Tensor& tensor);

// After an in-place write: `tensor` is result `output_nr` of `node` now, whose edge `edge` is that of what was
// overwritten. For a view, its base gets a node that puts the part into the whole.
void rebase_history(const Tensor& tensor, NodePtr node, uint32_t output_nr = 0, size_t edge = 0);

// Adds the gradient of a node's result to what `slot` is read for, whenever it runs.
void retain_in(Node& node, uint32_t result, IntrusivePtr<GradSlot> slot);
// And no longer.
void release_retained(Node& node, const GradSlot& slot);

}  // namespace tensord::autograd
