// One step of an optimizer over a list of parameters as one operator: tensord::sgd_step_ and others, and the clipping
// of gradients. core/nn calls them. Arguments are lists of the same length; the lists of states that are not in use are
// empty. Tensors are float32 or float64 on one device; gradients that are clipped may have 16 bits. `rounded` is empty
// or has parameters of 16 bits, of which `params` are float32 copies: gradients then have the parameters' dtype, and
// each copy is rounded to its parameter in the same pass.
#include "core/ops/op.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

Tensor itself(const Tensor& grad) { return grad; }
Tensor zeroed(const Tensor& grad) { return ops::zero_(grad); }

// The first step has no momentum buffers. Returns those that the step made; empty if it updated the given ones.
OP("tensord::sgd_step_").kind(ops::OpKind::kAllocating);
OP("tensord::adam_step_").kind(ops::OpKind::kAllocating);
OP("tensord::rmsprop_step_").kind(ops::OpKind::kAllocating);
OP("tensord::adagrad_step_").kind(ops::OpKind::kAllocating);
// For sparse gradients alone.
OP("tensord::sparse_adam_step_").kind(ops::OpKind::kAllocating);
// Moves averages (float32 or float64) towards parameters, which may have 16 bits: lerp_ of each.
OP("tensord::average_step_").kind(ops::OpKind::kAllocating);
// A gradient in which no position occurs twice: itself unless it is sparse.
OP("tensord::coalesced_grad").impl(itself).composite();
// The gradient with zeros written into it; a sparse one is replaced by one without elements.
OP("tensord::zeroed_grad_").impl(zeroed).composite();
// Sparse gradients are coalesced.
OP("tensord::grad_norm").kind(ops::OpKind::kAllocating);
OP("tensord::clip_grad_norm_").kind(ops::OpKind::kAllocating);
OP("tensord::clip_grad_value_").kind(ops::OpKind::kAllocating);

}  // namespace
}  // namespace tensord::kernels
