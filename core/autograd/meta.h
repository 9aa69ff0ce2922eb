#pragma once

#include <atomic>

#include "core/autograd/node.h"
#include "core/base/mutex.h"
#include "core/tensor/tensor.h"

// The object behind TensorImpl::autograd. For core/autograd only; other code uses variable.h.
namespace tensord::autograd {

class AccumulateGrad;

// Holds the gradient of a tensor. Shared by the tensor and the node that adds to it, so that neither has to own the
// other.
struct GradSlot final : RefCounted {
  Mutex mutex;
  Tensor value TENSORD_GUARDED_BY(mutex);
};

struct TensorState : AutogradMeta {
  ~TensorState() override;
  bool requires_grad = false;  // of a leaf: it requires a gradient
  bool retains_grad = false;
  bool is_view = false;  // whether this is a ViewState
  uint32_t output_nr = 0;
  NodePtr grad_fn;
  std::atomic<AccumulateGrad*> accumulator{nullptr};  // of a leaf; owned, made on first use, never changed
  IntrusivePtr<GradSlot> slot;                        // set if a gradient was set or is retained without an accumulator
};

// The origin of a view, which decides whether it may be written in place.
enum class Creation : uint8_t { kDefault, kNoGrad, kMultiOutput, kCustomFunction };

// A view that autograd tracks. Writing it changes the history of its base. Writing the base, or another view of it,
// changes the history of this one: grad_fn is made anew if the storage's version is not `version`.
struct ViewState final : TensorState {
  ViewState() { is_view = true; }
  Mutex mutex;
  Tensor base;  // never a view itself
  Creation creation = Creation::kDefault;
  uint32_t version = 0;
};

// Also null for a sparse tensor, whose values have a state of their own.
inline TensorState* state_of(const TensorImpl& tensor) { return static_cast<TensorState*>(tensor.autograd.get()); }
inline TensorState* state_of(const Tensor& tensor) { return state_of(*tensor.impl()); }
inline ViewState* view_of(const Tensor& tensor) {
  TensorState* state = state_of(tensor);
  return state && state->is_view ? static_cast<ViewState*>(state) : nullptr;
}
// Makes an empty one if there is none.
TensorState& ensure_state(const Tensor& tensor);

// Makes `tensor` result `output_nr` of `node` and drops its previous history.
void set_history(const Tensor& tensor, NodePtr node, uint32_t output_nr);

}  // namespace tensord::autograd
