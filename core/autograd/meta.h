#pragma once

#include <atomic>

#include "core/autograd/node.h"
#include "core/base/mutex.h"
#include "core/tensor/tensor.h"

// What TensorImpl::autograd points to. For core/autograd only; others read variable.h.
namespace tensord::autograd {

class AccumulateGrad;

// Where the gradient of a tensor is kept; shared by the tensor and the node that adds to it, which
// therefore need not own each other.
struct GradSlot final : RefCounted {
  Mutex mutex;
  Tensor value TENSORD_GUARDED_BY(mutex);
};

struct TensorState : AutogradMeta {
  ~TensorState() override;
  bool requires_grad = false;  // of a leaf: it was asked for
  bool retains_grad = false;
  bool is_view = false;  // it is a ViewState
  uint32_t output_nr = 0;
  NodePtr grad_fn;
  std::atomic<AccumulateGrad*> accumulator{nullptr};  // of a leaf; owned, made on first use, never changed
  IntrusivePtr<GradSlot> slot;                        // when a gradient was set or is retained without an accumulator
};

// How a view came about, which decides whether it may be written in place.
enum class Creation : uint8_t { kDefault, kNoGrad, kMultiOutput, kCustomFunction };

// A view that autograd tracks. Writing it changes the history of its base; writing the base, or
// another view of it, changes the history of this one: grad_fn is made anew when the version of the
// storage is not `version`.
struct ViewState final : TensorState {
  ViewState() { is_view = true; }
  Mutex mutex;
  Tensor base;  // is no view itself
  Creation creation = Creation::kDefault;
  uint32_t version = 0;
};

// Null also for a sparse tensor, whose values have a state of their own.
inline TensorState* state_of(const Tensor& tensor) { return static_cast<TensorState*>(tensor.impl()->autograd.get()); }
inline ViewState* view_of(const Tensor& tensor) {
  TensorState* state = state_of(tensor);
  return state && state->is_view ? static_cast<ViewState*>(state) : nullptr;
}
// Makes an empty one when there is none.
TensorState& ensure_state(const Tensor& tensor);

// Makes `tensor` result `output_nr` of `node`; what it was before is forgotten.
void set_history(const Tensor& tensor, NodePtr node, uint32_t output_nr);

}  // namespace tensord::autograd
