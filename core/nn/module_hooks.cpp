// Running a module with its hooks. For backward hooks the inputs and the results go through a function that changes
// nothing and whose backward sees all of their gradients at once.
#include <functional>
#include <utility>

#include "core/autograd/function.h"
#include "core/autograd/variable.h"
#include "core/nn/module.h"
#include "core/tensor/grad_mode.h"

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

using OnGradients = std::function<Tensors(Tensors gradients)>;
struct Callback final : ops::OpaqueObject {
  explicit Callback(OnGradients function) : function(std::move(function)) {}
  std::string class_name() const override { return "callback"; }
  const OnGradients function;
};

struct BackwardHookFunction : autograd::Function<BackwardHookFunction> {
  static Tensors forward(autograd::FunctionContext& context, const Tensors& tensors, const OnGradients& on_gradients) {
    context.set_materialize_grads(false);
    context.data["callback"] = ops::Value(IntrusivePtr<ops::OpaqueObject>(make_intrusive<Callback>(on_gradients)));
    return tensors;
  }
  static Tensors backward(autograd::FunctionContext& context, Tensors gradients) {
    const auto& callback = static_cast<const Callback&>(*context.data.at("callback").to_opaque());
    Tensors changed = callback.function(std::move(gradients));
    changed.emplace_back();  // of the callback itself
    return changed;
  }
};

// Sends the defined tensors through the function; false when none of them takes part in autograd.
bool watch(Tensors& tensors, const OnGradients& on_gradients) {
  Tensors defined;
  std::vector<size_t> places;
  bool requires_grad = false;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined()) continue;
    defined.push_back(tensors[i]);
    places.push_back(i);
    requires_grad = requires_grad || autograd::requires_grad(tensors[i]);
  }
  if (!requires_grad || !is_grad_enabled()) return false;
  // The callback sees a gradient for each of `tensors`, the function for each defined one.
  const size_t count = tensors.size();
  const Tensors watched = BackwardHookFunction::apply(defined, OnGradients([=](Tensors gradients) {
                                                        Tensors all(count);
                                                        for (size_t i = 0; i < places.size(); ++i)
                                                          all[places[i]] = std::move(gradients[i]);
                                                        all = on_gradients(std::move(all));
                                                        for (size_t i = 0; i < places.size(); ++i)
                                                          gradients[i] = std::move(all[places[i]]);
                                                        return gradients;
                                                      }));
  for (size_t i = 0; i < places.size(); ++i) tensors[places[i]] = watched[i];
  return true;
}

void replace(Tensors& gradients, std::optional<Tensors> changed, const char* what) {
  if (!changed) return;
  check(changed->size() == gradients.size(), "Backward hook returned an invalid number of ", what, ", got ",
        changed->size(), ", but expected ", gradients.size());
  gradients = std::move(*changed);
}

// The backward hooks of one call of a module.
struct BackwardHooks : std::enable_shared_from_this<BackwardHooks> {
  explicit BackwardHooks(Module& module) : module(module) {}
  Module& module;
  std::vector<std::shared_ptr<BackwardHook>> hooks;
  std::vector<std::shared_ptr<BackwardPreHook>> pre_hooks;
  std::optional<Tensors> grad_outputs;  // between the backward of the results and that of the inputs
  bool watches_inputs = false;
  size_t input_count = 0;

  Tensors on_outputs(Tensors gradients) {
    for (const auto& hook : pre_hooks) replace(gradients, (*hook)(module, gradients), "grad_output");
    if (watches_inputs) {
      grad_outputs = gradients;
      return gradients;
    }
    const Tensors none(input_count);
    for (const auto& hook : hooks) {
      const auto changed = (*hook)(module, none, gradients);
      for (const Tensor& tensor : changed.value_or(Tensors())) {
        check(!tensor.defined(),
              "Backward hook for Modules where no input requires gradient should always return None or None for all "
              "gradients.");
      }
    }
    return gradients;
  }

  Tensors on_inputs(Tensors gradients) {
    check(grad_outputs.has_value(),
          "Module backward hook for grad_input is called before the grad_output one. This happens because the gradient "
          "in your nn.Module flows to the Module's input without passing through the Module's output. Make sure that "
          "the output depends on the input and that the loss is computed based on the output.");
    for (const auto& hook : hooks) replace(gradients, (*hook)(module, gradients, *grad_outputs), "grad_input");
    grad_outputs.reset();
    return gradients;
  }

  void watch_inputs(Tensors& inputs) {
    input_count = inputs.size();
    watches_inputs =
        watch(inputs, [self = shared_from_this()](Tensors gradients) { return self->on_inputs(std::move(gradients)); });
  }
  void watch_outputs(Tensors& outputs) {
    watch(outputs, [self = shared_from_this()](Tensors gradients) { return self->on_outputs(std::move(gradients)); });
  }
};

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
  const auto backward = std::make_shared<BackwardHooks>(*this);
  backward->hooks = in_order(global.backward, backward_hooks_);
  backward->pre_hooks = backward_pre_hooks_.items();
  const bool watches = !backward->hooks.empty() || !backward->pre_hooks.empty();
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
