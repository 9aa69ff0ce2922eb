// One step of an optimizer over a list of parameters, as one operator: tensord::sgd_step_ and its like, and
// the clipping of gradients. Written for core/nn; arguments are lists of the same length, states are empty
// lists where not in use. Tensors: float32 or float64 of one device; gradients to clip may be of 16 bits. `rounded`:
// empty, or parameters of 16 bits of which `params` are float32 copies: their gradients have their dtype, and each copy
// is rounded to its parameter in the same pass.
#include "core/ops/op.h"

namespace tensord::kernels {
namespace {

OP("tensord::sgd_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] momentum_buffers, float lr, float "
   "weight_decay, float momentum, float dampening, bool nesterov, bool maximize, bool is_first, Tensor(z!)[] rounded) "
   "-> ()")
    .kind(ops::OpKind::kAllocating);
OP("tensord::adam_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] exp_avgs, Tensor(c!)[] exp_avg_sqs, "
   "Tensor(d!)[] max_exp_avg_sqs, int[] steps, float lr, float beta1, float beta2, float eps, float weight_decay, "
   "bool decoupled, bool maximize, Tensor(z!)[] rounded) -> ()")
    .kind(ops::OpKind::kAllocating);
OP("tensord::rmsprop_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] square_avgs, Tensor(c!)[] "
   "momentum_buffers, Tensor(d!)[] grad_avgs, float lr, float alpha, float eps, float weight_decay, float momentum, "
   "bool maximize, Tensor(z!)[] rounded) -> ()")
    .kind(ops::OpKind::kAllocating);
OP("tensord::adagrad_step_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] state_sums, int[] steps, float lr, float "
   "lr_decay, float weight_decay, float eps, bool maximize, Tensor(z!)[] rounded) -> ()")
    .kind(ops::OpKind::kAllocating);
OP("tensord::grad_norm(Tensor[] grads, float norm_type) -> float").kind(ops::OpKind::kAllocating);
OP("tensord::clip_grad_norm_(Tensor(a!)[] grads, float max_norm, float norm_type, bool error_if_nonfinite) -> float")
    .kind(ops::OpKind::kAllocating);
OP("tensord::clip_grad_value_(Tensor(a!)[] grads, float clip_value) -> ()").kind(ops::OpKind::kAllocating);

}  // namespace
}  // namespace tensord::kernels
