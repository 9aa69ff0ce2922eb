// One step of an optimizer over a list of parameters, as one operator: tensord::sgd_step_ and its like, and
// the clipping of gradients. Written for core/nn; arguments are lists of the same length, states are empty
// lists where not in use. Tensors: float32 or float64 of one device; gradients to clip may be of 16 bits. `rounded`:
// empty, or parameters of 16 bits of which `params` are float32 copies: their gradients have their dtype, and each copy
// is rounded to its parameter in the same pass.
#include "core/ops/op.h"

namespace tensord::kernels {
namespace {

OP("tensord::sgd_step_").kind(ops::OpKind::kAllocating);
OP("tensord::adam_step_").kind(ops::OpKind::kAllocating);
OP("tensord::rmsprop_step_").kind(ops::OpKind::kAllocating);
OP("tensord::adagrad_step_").kind(ops::OpKind::kAllocating);
OP("tensord::grad_norm").kind(ops::OpKind::kAllocating);
OP("tensord::clip_grad_norm_").kind(ops::OpKind::kAllocating);
OP("tensord::clip_grad_value_").kind(ops::OpKind::kAllocating);

}  // namespace
}  // namespace tensord::kernels
