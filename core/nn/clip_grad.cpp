#include "core/nn/clip_grad.h"

#include <vector>

#include "core/autograd/variable.h"
#include "core/ops/run.h"
#include "core/tensor/grad_mode.h"

namespace tensord::nn {
namespace {

std::vector<Tensor> gradients_of(std::span<const Tensor> parameters) {
  std::vector<Tensor> gradients;
  for (const Tensor& parameter : parameters) {
    Tensor gradient = autograd::grad(parameter);
    if (gradient.defined()) gradients.push_back(std::move(gradient));
  }
  return gradients;
}

}  // namespace

double clip_grad_norm_(std::span<const Tensor> parameters, double max_norm, double norm_type, bool error_if_nonfinite) {
  const NoGradGuard without_grad;
  return ops::call<double>("tensord::clip_grad_norm_", gradients_of(parameters), max_norm, norm_type,
                           error_if_nonfinite);
}

double grad_norm(std::span<const Tensor> parameters, double norm_type) {
  const NoGradGuard without_grad;
  return ops::call<double>("tensord::grad_norm", gradients_of(parameters), norm_type);
}

void clip_grad_value_(std::span<const Tensor> parameters, double clip_value) {
  const NoGradGuard without_grad;
  ops::call<void>("tensord::clip_grad_value_", gradients_of(parameters), clip_value);
}

void zero_grad(std::span<const Tensor> parameters, bool set_to_none) {
  const NoGradGuard without_grad;
  for (const Tensor& parameter : parameters) {
    Tensor gradient = autograd::grad(parameter);
    if (!gradient.defined()) continue;
    if (set_to_none) {
      autograd::set_grad(parameter, {});
      continue;
    }
    // A gradient with a past of its own (create_graph) starts anew.
    if (autograd::grad_fn(gradient)) {
      gradient = autograd::detach(gradient);
      autograd::set_grad(parameter, gradient);
    }
    ops::call("aten::zero_", gradient);
  }
}

}  // namespace tensord::nn
