// Runs a module with its hooks.
#include <utility>

#include "core/autograd/hooks/call_hooks.h"
#include "core/nn/module.h"

namespace tensord::nn {
namespace {

struct GlobalHooks {
  HookList<ForwardPreHook> forward_pre;
  HookList<ForwardHook> forward;
  HookList<BackwardHook> backward;
};
GlobalHooks& global_hooks() {
  static GlobalHooks hooks;
  return hooks;
}

template <class Hook>
std::vector<std::shared_ptr<Hook>> in_order(const HookList<Hook>& global, const HookList<Hook>& own) {
  auto hooks = global.items();
  for (auto& hook : own.items()) hooks.push_back(std::move(hook));
  return hooks;
}

}  // namespace

Tensors Module::run(Tensors inputs) {
  const GlobalHooks& global = global_hooks();
  const bool has_hooks =
      !(forward_pre_hooks_.empty() && forward_hooks_.empty() && backward_hooks_.empty() &&
        backward_pre_hooks_.empty() && global.forward_pre.empty() && global.forward.empty() && global.backward.empty());
  return has_hooks ? run_with_hooks(std::move(inputs)) : forward(inputs);
}

Tensors Module::run_with_hooks(Tensors inputs) {
  const GlobalHooks& global = global_hooks();
  for (const auto& hook : in_order(global.forward_pre, forward_pre_hooks_)) {
    if (auto changed = (*hook)(*this, inputs)) inputs = std::move(*changed);
  }
  std::vector<autograd::CallHooks::Hook> hooks;
  for (const auto& hook : in_order(global.backward, backward_hooks_)) {
    hooks.push_back(
        [this, hook](const Tensors& inputs, const Tensors& outputs) { return (*hook)(*this, inputs, outputs); });
  }
  std::vector<autograd::CallHooks::PreHook> pre_hooks;
  for (const auto& hook : backward_pre_hooks_.items()) {
    pre_hooks.push_back([this, hook](const Tensors& outputs) { return (*hook)(*this, outputs); });
  }
  const bool watches = !hooks.empty() || !pre_hooks.empty();
  const auto backward = std::make_shared<autograd::CallHooks>(std::move(hooks), std::move(pre_hooks));
  if (watches) backward->watch_inputs(inputs);
  Tensors outputs = forward(inputs);
  for (const auto& hook : in_order(global.forward, forward_hooks_)) {
    if (auto changed = (*hook)(*this, inputs, outputs)) outputs = std::move(*changed);
  }
  if (watches) backward->watch_outputs(outputs);
  return outputs;
}

HookHandle register_global_forward_pre_hook(ForwardPreHook hook) {
  return global_hooks().forward_pre.add(std::move(hook));
}
HookHandle register_global_forward_hook(ForwardHook hook) { return global_hooks().forward.add(std::move(hook)); }
HookHandle register_global_full_backward_hook(BackwardHook hook) {
  return global_hooks().backward.add(std::move(hook));
}

}  // namespace tensord::nn
