#include "core/nn/optim/clip_grad.h"

#include <vector>

#include "core/autograd/variable.h"
#include "core/tensor/grad_mode.h"
#include "ops/optim.h"

namespace tensord::nn {
namespace {

// Coalesced, so that functions of single elements are right.
std::vector<Tensor> gradients_of(std::span<const Tensor> parameters) {
  std::vector<Tensor> gradients;
  for (const Tensor& parameter : parameters) {
    const Tensor gradient = autograd::grad(parameter);
    if (!gradient.defined()) continue;
    gradients.push_back(ops::tensord_coalesced_grad(gradient));
    if (!gradients.back().is_same(gradient)) autograd::set_grad(parameter, gradients.back());
  }
  return gradients;
}

}  // namespace

double clip_grad_norm_(std::span<const Tensor> parameters, double max_norm, double norm_type, bool error_if_nonfinite) {
  const NoGradGuard without_grad;
  return ops::tensord_clip_grad_norm_(gradients_of(parameters), max_norm, norm_type, error_if_nonfinite);
}

double grad_norm(std::span<const Tensor> parameters, double norm_type) {
  const NoGradGuard without_grad;
  return ops::tensord_grad_norm(gradients_of(parameters), norm_type);
}

void clip_grad_value_(std::span<const Tensor> parameters, double clip_value) {
  const NoGradGuard without_grad;
  ops::tensord_clip_grad_value_(gradients_of(parameters), clip_value);
}

void zero_grad(std::span<const Tensor> parameters, bool set_to_none) {
  const NoGradGuard without_grad;
  for (const Tensor& parameter : parameters) {
    const Tensor gradient = autograd::grad(parameter);
    if (!gradient.defined()) continue;
    if (set_to_none) {
      autograd::set_grad(parameter, {});
      continue;
    }
    // A gradient with a graph (create_graph) is detached.
    const bool has_graph = autograd::grad_fn(gradient) != nullptr;
    const Tensor zeros = ops::tensord_zeroed_grad_(has_graph ? autograd::detach(gradient) : gradient);
    if (!zeros.is_same(gradient)) autograd::set_grad(parameter, zeros);
  }
}

}  // namespace tensord::nn
