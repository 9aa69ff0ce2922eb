#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/tensor/tensor.h"

namespace tensord::autograd {

// Hooks on the gradients of one call of a module: its inputs and its results go through a function that changes
// nothing and whose backward sees all of their gradients at once. Undefined where there is no gradient.
class CallHooks : public std::enable_shared_from_this<CallHooks> {
 public:
  using Tensors = std::vector<Tensor>;
  // Called with the gradients of the inputs and of the results; may replace those of the inputs.
  using Hook = std::function<std::optional<Tensors>(const Tensors& grad_inputs, const Tensors& grad_outputs)>;
  // Called before the module's own backward; may replace the gradients of the results.
  using PreHook = std::function<std::optional<Tensors>(const Tensors& grad_outputs)>;

  // Held by shared_ptr: the graph keeps it.
  CallHooks(std::vector<Hook> hooks, std::vector<PreHook> pre_hooks)
      : hooks_(std::move(hooks)), pre_hooks_(std::move(pre_hooks)) {}

  // Before and after the call; the defined tensors are replaced. The hooks throw Error out of the backward pass.
  void watch_inputs(Tensors& inputs);
  void watch_outputs(Tensors& outputs);

 private:
  Tensors on_outputs(Tensors gradients);
  Tensors on_inputs(Tensors gradients);

  const std::vector<Hook> hooks_;
  const std::vector<PreHook> pre_hooks_;
  std::optional<Tensors> grad_outputs_;  // between the backward of the results and that of the inputs
  bool watches_inputs_ = false;
  size_t input_count_ = 0;
};

}  // namespace tensord::autograd
