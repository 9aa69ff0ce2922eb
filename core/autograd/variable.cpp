#include "core/autograd/variable.h"

#include "core/autograd/accumulate_grad.h"
#include "core/autograd/autocast.h"
#include "core/autograd/differentiable.h"
#include "core/autograd/hooks/hooks.h"
#include "core/autograd/meta.h"
#include "core/autograd/recorder.h"
#include "core/autograd/view.h"
#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/ops/sparse.h"

namespace tensord::autograd {
namespace {

[[maybe_unused]] const bool is_installed = (install_recorder(), install_autocast(), true);

// The accumulator of a leaf, made on first use. Thread-safe.
NodePtr accumulator_of(const Tensor& leaf, TensorState& state) {
  AccumulateGrad* known = state.accumulator.load(std::memory_order_acquire);
  if (known) return NodePtr(known);
  auto made = make_intrusive<AccumulateGrad>(leaf, state.slot ? state.slot : make_intrusive<GradSlot>());
  if (state.accumulator.compare_exchange_strong(known, made.get(), std::memory_order_acq_rel)) {
    made->add_ref();  // the reference of the tensor
    return made;
  }
  return NodePtr(known);
}

GradSlot* slot_of(const TensorState& state) {
  const AccumulateGrad* accumulator = state.accumulator.load(std::memory_order_acquire);
  return accumulator ? accumulator->slot().get() : state.slot.get();
}

}  // namespace

TensorState::~TensorState() {
  drop(std::move(grad_fn));
  if (AccumulateGrad* owned = accumulator.load(std::memory_order_acquire)) owned->release();
}

TensorState& ensure_state(const Tensor& tensor) {
  ops::checked_dense(tensor, "this part of autograd");
  IntrusivePtr<AutogradMeta>& meta = tensor.impl()->autograd;
  if (!meta) meta = make_intrusive<TensorState>();
  return *static_cast<TensorState*>(meta.get());
}

void set_history(const Tensor& tensor, NodePtr node, uint32_t output_nr) {
  check_internal(output_nr < node->results().size() && node->results()[output_nr].defined(),
                 "a history from a node that knows no such result");
  TensorState& state = ensure_state(tensor);
  if (state.retains_grad) {
    if (state.grad_fn) release_retained(*state.grad_fn, *state.slot);
    retain_in(*node, output_nr, state.slot);
  }
  drop(std::exchange(state.grad_fn, std::move(node)));
  state.output_nr = output_nr;
  state.requires_grad = false;
}

bool requires_grad(const Tensor& tensor) {
  const TensorState* state = state_of(tensor.impl()->differentiable());
  if (!state) return false;
  if (state->requires_grad || state->grad_fn) return true;
  return state->is_view && requires_grad(static_cast<const ViewState*>(state)->base);
}

void set_requires_grad(const Tensor& tensor, bool value) {
  check(is_leaf(tensor) || value,
        "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
        "subgraph that doesn't require differentiation use var_no_grad = var.detach().");
  check(!value || is_differentiable(tensor.dtype()),
        "only Tensors of floating point and complex dtype can require gradients");
  check(!value || !tensor.impl()->is_inference || is_inference_mode(),
        "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
  if (!is_leaf(tensor)) return;
  if (value || state_of(tensor)) ensure_state(tensor).requires_grad = value;
}

bool is_leaf(const Tensor& tensor) { return !grad_fn(tensor); }

Tensor grad(const Tensor& tensor) {
  const TensorState* state = state_of(tensor);
  GradSlot* slot = state ? slot_of(*state) : nullptr;
  if (!slot) return {};
  const MutexLock lock(slot->mutex);
  return slot->value;
}

void set_grad(const Tensor& tensor, const Tensor& gradient) {
  if (gradient.defined()) {
    check(!gradient.is_same(tensor), "can't assign Variable as its own grad");
    check(gradient.dtype() == tensor.dtype(), "assigned grad has data of a different type");
    check(gradient.device() == tensor.device(), "assigned grad has data located on a different device");
    check(gradient.sizes() == tensor.sizes(), "assigned grad has data of a different size");
  } else if (!state_of(tensor)) {
    return;
  }
  TensorState& state = ensure_state(tensor);
  if (!slot_of(state)) state.slot = make_intrusive<GradSlot>();
  GradSlot* slot = slot_of(state);
  Tensor before = gradient;  // freed after the lock is released
  const MutexLock lock(slot->mutex);
  std::swap(slot->value, before);
}

NodePtr grad_fn(const Tensor& tensor) {
  if (ViewState* view = view_of(tensor)) return refresh(tensor, *view);
  const TensorState* state = state_of(tensor);
  return state ? state->grad_fn : NodePtr();
}

uint32_t output_nr(const Tensor& tensor) {
  const TensorState* state = state_of(tensor);
  return state ? state->output_nr : 0;
}

Edge gradient_edge(const Tensor& tensor) {
  TensorState* state = state_of(tensor);
  if (!state) return {};
  if (NodePtr node = grad_fn(tensor)) return {std::move(node), state->output_nr};
  if (!state->requires_grad) return {};
  return {accumulator_of(tensor, *state), 0};
}

Tensor detach(const Tensor& tensor) { return tensor.impl()->shallow_copy_and_detach(); }

void detach_in_place(const Tensor& tensor) {
  check(!is_view(tensor), "Can't detach views in-place. Use detach() instead.");
  TensorState* state = state_of(tensor);
  if (!state) return;
  drop(std::move(state->grad_fn));
  state->output_nr = 0;
  state->requires_grad = state->retains_grad = false;
}

void retain_in(Node& node, uint32_t result, IntrusivePtr<GradSlot> slot) {
  const auto& hooks = node.make_hooks();
  const MutexLock lock(hooks->mutex);
  hooks->retained.emplace_back(result, std::move(slot));
}

void release_retained(Node& node, const GradSlot& slot) {
  const auto& hooks = node.make_hooks();
  const MutexLock lock(hooks->mutex);
  std::erase_if(hooks->retained, [&](const auto& entry) { return entry.second.get() == &slot; });
}

void retain_grad(const Tensor& tensor) {
  check(requires_grad(tensor), "can't retain_grad on Tensor that has requires_grad=False");
  const NodePtr node = grad_fn(tensor);
  TensorState& state = ensure_state(tensor);
  if (!node || state.retains_grad) return;  // a leaf keeps its gradient anyway
  state.retains_grad = true;
  if (!state.slot) state.slot = make_intrusive<GradSlot>();
  retain_in(*node, state.output_nr, state.slot);
}

bool retains_grad(const Tensor& tensor) {
  const TensorState* state = state_of(tensor);
  return state && state->retains_grad;
}

bool is_view(const Tensor& tensor) { return view_of(tensor) != nullptr; }

Tensor base_of(const Tensor& view) {
  const ViewState* state = view_of(view);
  return state ? state->base : Tensor();
}

HookHandle register_hook(const Tensor& tensor, TensorHook hook) {
  check(requires_grad(tensor), "cannot register a hook on a tensor that doesn't require gradient");
  const Edge edge = gradient_edge(tensor);
  check(static_cast<bool>(edge), "cannot register a hook on a view that was made in no_grad mode");
  const auto& hooks = edge.node->make_hooks();
  const MutexLock lock(hooks->mutex);
  const uint64_t id = ++hooks->last_id;
  hooks->of_tensors.push_back({id, edge.input_nr, std::move(hook)});
  return HookHandle([weak = std::weak_ptr(hooks), id] {
    if (const auto hooks = weak.lock()) {
      const MutexLock lock(hooks->mutex);
      std::erase_if(hooks->of_tensors, [id](const auto& entry) { return entry.id == id; });
    }
  });
}

}  // namespace tensord::autograd
