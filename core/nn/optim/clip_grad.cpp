#include "core/nn/optim/clip_grad.h"

#include <vector>

#include "core/autograd/variable.h"
#include "core/ops/run.h"
#include "core/ops/sparse.h"
#include "core/tensor/grad_mode.h"
#include "ops/optim.h"
#include "ops/sparse.h"
#include "ops/view.h"

namespace tensord::nn {
namespace {

// For a sparse gradient, its coalesced values: all other elements are 0.
std::vector<Tensor> gradients_of(std::span<const Tensor> parameters) {
  std::vector<Tensor> gradients;
  for (const Tensor& parameter : parameters) {
    Tensor gradient = autograd::grad(parameter);
    if (ops::as_sparse(gradient)) {
      const Tensor coalesced = ops::coalesce(gradient);
      if (!coalesced.is_same(gradient)) autograd::set_grad(parameter, coalesced);
      gradient = ops::as_sparse(coalesced)->values();
    }
    if (gradient.defined()) gradients.push_back(std::move(gradient));
  }
  return gradients;
}

// Without any element.
Tensor empty_like(const ops::SparseTensor& sparse) {
  Dims sizes = sparse.values().sizes();
  sizes[0] = 0;
  return Tensor(ops::SparseTensor::coo(sparse.sizes(), Tensor::empty(Dims{sparse.sparse_dim(), 0}, DType::kInt64),
                                       Tensor::empty(sizes, sparse.dtype(), sparse.device), true));
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
    Tensor gradient = autograd::grad(parameter);
    if (!gradient.defined()) continue;
    if (set_to_none) {
      autograd::set_grad(parameter, {});
      continue;
    }
    if (const ops::SparsePtr sparse = ops::as_sparse(gradient); sparse && sparse->is_coo()) {
      autograd::set_grad(parameter, empty_like(*sparse));
      continue;
    }
    // A gradient with a graph (create_graph) is detached.
    if (autograd::grad_fn(gradient)) {
      gradient = autograd::detach(gradient);
      autograd::set_grad(parameter, gradient);
    }
    ops::zero_(gradient);
  }
}

}  // namespace tensord::nn
