#include "core/autograd/hooks/call_hooks.h"

#include <utility>

#include "core/autograd/function.h"
#include "core/autograd/variable.h"
#include "core/tensor/grad_mode.h"

namespace tensord::autograd {
namespace {

using Tensors = CallHooks::Tensors;
using OnGradients = std::function<Tensors(Tensors gradients)>;
struct Callback final : ops::OpaqueObject {
  explicit Callback(OnGradients function) : function(std::move(function)) {}
  std::string class_name() const override { return "callback"; }
  const OnGradients function;
};

struct BackwardHookFunction : Function<BackwardHookFunction> {
  static Tensors forward(FunctionContext& context, const Tensors& tensors, const OnGradients& on_gradients) {
    context.set_materialize_grads(false);
    context.data["callback"] = ops::Value(IntrusivePtr<ops::OpaqueObject>(make_intrusive<Callback>(on_gradients)));
    return tensors;
  }
  static Tensors backward(FunctionContext& context, Tensors gradients) {
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

}  // namespace

Tensors CallHooks::on_outputs(Tensors gradients) {
  for (const PreHook& hook : pre_hooks_) replace(gradients, hook(gradients), "grad_output");
  if (watches_inputs_) {
    grad_outputs_ = gradients;
    return gradients;
  }
  const Tensors none(input_count_);
  for (const Hook& hook : hooks_) {
    const auto changed = hook(none, gradients);
    for (const Tensor& tensor : changed.value_or(Tensors())) {
      check(!tensor.defined(),
            "Backward hook for Modules where no input requires gradient should always return None or None for all "
            "gradients.");
    }
  }
  return gradients;
}

Tensors CallHooks::on_inputs(Tensors gradients) {
  check(grad_outputs_.has_value(),
        "Module backward hook for grad_input is called before the grad_output one. This happens because the gradient "
        "in your nn.Module flows to the Module's input without passing through the Module's output. Make sure that "
        "the output depends on the input and that the loss is computed based on the output.");
  for (const Hook& hook : hooks_) replace(gradients, hook(gradients, *grad_outputs_), "grad_input");
  grad_outputs_.reset();
  return gradients;
}

void CallHooks::watch_inputs(Tensors& inputs) {
  input_count_ = inputs.size();
  watches_inputs_ =
      watch(inputs, [self = shared_from_this()](Tensors gradients) { return self->on_inputs(std::move(gradients)); });
}

void CallHooks::watch_outputs(Tensors& outputs) {
  watch(outputs, [self = shared_from_this()](Tensors gradients) { return self->on_outputs(std::move(gradients)); });
}

}  // namespace tensord::autograd
