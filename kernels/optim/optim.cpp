// One step of an optimizer over a list of parameters as one operator: tensord::sgd_step_ and others, and the clipping
// of gradients. core/nn calls them. Arguments are lists of the same length; the lists of states that are not in use are
// empty. Tensors are float32 or float64 on one device; gradients that are clipped may have 16 bits. `rounded` is empty
// or has parameters of 16 bits, of which `params` are float32 copies: gradients then have the parameters' dtype, and
// each copy is rounded to its parameter in the same pass.
#include "core/ops/op.h"

namespace tensord::kernels {
namespace {

OP("tensord::sgd_step_").kind(ops::OpKind::kAllocating);
OP("tensord::adam_step_").kind(ops::OpKind::kAllocating);
OP("tensord::rmsprop_step_").kind(ops::OpKind::kAllocating);
OP("tensord::adagrad_step_").kind(ops::OpKind::kAllocating);
// Moves averages (float32 or float64) towards parameters, which may have 16 bits: lerp_ of each.
OP("tensord::average_step_").kind(ops::OpKind::kAllocating);
OP("tensord::grad_norm").kind(ops::OpKind::kAllocating);
OP("tensord::clip_grad_norm_").kind(ops::OpKind::kAllocating);
OP("tensord::clip_grad_value_").kind(ops::OpKind::kAllocating);

}  // namespace
}  // namespace tensord::kernels
