// Steps of optimizers with sparse gradients (kernels/optim/optim.cpp): they read and write only the rows that a
// gradient has. And what clipping needs of such gradients.
#include <cmath>
#include <initializer_list>

#include "core/base/error.h"
#include "kernels/sparse/sparse.h"
#include "ops/embedding.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/optim.h"
#include "ops/pointwise.h"
#include "ops/view.h"

namespace tensord::kernels {
namespace {

using ops::IntList;
using ops::TensorList;

void check_trained(const Tensor& param) {
  check(param.dtype() == DType::kFloat32 || param.dtype() == DType::kFloat64, "parameters of ", name_of(param.dtype()),
        " cannot be trained, float32 and float64 can");
}

// Scripts can call the steps too. `optional` lists may be empty.
void check_lists(const TensorList& params, std::initializer_list<const TensorList*> required,
                 std::initializer_list<const TensorList*> optional) {
  const auto check_size = [&params](const TensorList& list) {
    check(list.size() == params.size(), "expected ", params.size(), " tensors but got ", list.size());
  };
  for (const TensorList* list : required) check_size(*list);
  for (const TensorList* list : optional) {
    if (!list->empty()) check_size(*list);
  }
}
void check_steps(const TensorList& params, const IntList& steps) {
  check(steps.size() == params.size(), "expected ", params.size(), " numbers of steps but got ", steps.size());
}

// The gradient in the parameter's dtype.
Tensor gradient_for(const Tensor& param, const Tensor& grad) {
  check_trained(param);
  const SparseTensor& sparse = sparse_of(grad);
  return sparse.dtype() == param.dtype() ? grad : Tensor(sparse.with(sparse.values().to(param.dtype())));
}

// Rounds float32 copies of parameters of 16 bits, if there are any.
void round_copies(const TensorList& params, const TensorList& rounded) {
  for (size_t i = 0; i < rounded.size(); ++i) ops::copy_(rounded[i], params[i]);
}

// A coalesced gradient, and access to the same positions in other tensors of the parameter's shape.
class GradientRows {
 public:
  GradientRows(const Tensor& param, const Tensor& grad, bool is_negated)
      : grad_(coalesced(coo_of(gradient_for(param, grad)))),
        values_(is_negated ? ops::neg(grad_->values()) : grad_->values()) {
    const Tensor indices = grad_->indices().to(values_.device());
    for (int64_t d = 0; d < grad_->sparse_dim(); ++d) places_.push_back(ops::select(indices, int64_t{0}, d));
  }

  bool is_empty() const { return values_.numel() == 0; }
  const Tensor& values() const { return values_; }
  Tensor of(const Tensor& tensor) const {
    return places_.size() == 1 ? ops::index_select(tensor, int64_t{0}, places_[0]) : ops::index(tensor, places_);
  }
  // tensor[places] += alpha · values. No position occurs twice.
  void add_to(const Tensor& tensor, const Tensor& values, double alpha = 1) const {
    if (places_.size() == 1) {
      ops::index_add_(tensor, int64_t{0}, places_[0], values, {.alpha = alpha});
    } else {
      ops::index_put_(tensor, places_, ops::mul(values, alpha), true);
    }
  }

 private:
  const SparsePtr grad_;
  Tensor values_;
  std::vector<Tensor> places_;  // one index tensor for each sparse dimension
};

// The momentum buffer is sparse too: it has all positions that any gradient had. After steps with dense gradients it
// is dense.
Tensor next_buffer(const Tensor& buffer, const Tensor& grad, double momentum, double dampening) {
  const Tensor kept = ops::mul(buffer, momentum);
  return ops::tensord_coalesced_grad(ops::add(kept, grad, {.alpha = 1 - dampening}));
}

TensorList sgd_step(const TensorList& params, const TensorList& grads, const TensorList& given, double lr,
                    double weight_decay, double momentum, double dampening, bool nesterov, bool maximize,
                    const TensorList& rounded) {
  check_lists(params, {&grads}, {&given, &rounded});
  check(weight_decay == 0, "weight_decay option is not compatible with sparse gradients");
  TensorList made;
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor given_grad = gradient_for(params[i], grads[i]);
    const Tensor grad = maximize ? ops::neg(given_grad) : given_grad;  // buffers too, as with dense gradients
    Tensor step = grad;
    if (momentum != 0) {
      made.push_back(given.empty() ? ops::clone(grad) : next_buffer(given[i], grad, momentum, dampening));
      if (nesterov && made.back().is_strided())
        fail(ErrorCode::kUnimplemented, "nesterov with a sparse gradient after dense ones is not supported");
      step = nesterov ? ops::add(grad, made.back(), {.alpha = momentum}) : made.back();
    }
    ops::add_(params[i], step, {.alpha = -lr});
  }
  round_copies(params, rounded);
  return made;
}

void adagrad_step(const TensorList& params, const TensorList& grads, const TensorList& sums, const IntList& steps,
                  double lr, double lr_decay, double weight_decay, double eps, bool maximize,
                  const TensorList& rounded) {
  check_lists(params, {&grads, &sums}, {&rounded});
  check_steps(params, steps);
  check(weight_decay == 0, "weight_decay option is not compatible with sparse gradients");
  for (size_t i = 0; i < params.size(); ++i) {
    const GradientRows rows(params[i], grads[i], maximize);
    rows.add_to(sums[i], ops::square(rows.values()));
    const Tensor deviation = ops::add(ops::sqrt(rows.of(sums[i])), eps);
    const double decay = 1 + static_cast<double>(steps[i] - 1) * lr_decay;
    rows.add_to(params[i], ops::div(rows.values(), deviation), -lr / decay);
  }
  round_copies(params, rounded);
}

// Moves the rows of an average that the gradient has; returns these rows.
Tensor averaged(const GradientRows& rows, const Tensor& average, const Tensor& values, double beta) {
  rows.add_to(average, ops::sub(values, rows.of(average)), 1 - beta);
  return rows.of(average);
}

void sparse_adam_step(const TensorList& params, const TensorList& grads, const TensorList& means,
                      const TensorList& squares, const IntList& steps, double lr, double beta1, double beta2,
                      double eps, bool maximize, const TensorList& rounded) {
  check_lists(params, {&grads, &means, &squares}, {&rounded});
  check_steps(params, steps);
  for (size_t i = 0; i < params.size(); ++i) {
    const GradientRows rows(params[i], grads[i], maximize);
    if (rows.is_empty()) continue;
    const Tensor numerator = averaged(rows, means[i], rows.values(), beta1);
    const Tensor square = averaged(rows, squares[i], ops::square(rows.values()), beta2);
    const auto step = static_cast<double>(steps[i]);
    const double size = lr * std::sqrt(1 - std::pow(beta2, step)) / (1 - std::pow(beta1, step));
    rows.add_to(params[i], ops::div(numerator, ops::add(ops::sqrt(square), eps)), -size);
  }
  round_copies(params, rounded);
}

// For sparse gradients, their values: all other elements are 0.
TensorList elements_to_clip(const TensorList& grads) {
  TensorList values;
  for (const Tensor& grad : grads) {
    const SparsePtr sparse = ops::as_sparse(grad);
    check(!sparse || !sparse->is_coo() || sparse->is_coalesced(), "gradients are not coalesced");
    values.push_back(sparse ? sparse->values() : grad);
  }
  return values;
}

Tensor emptied(const Tensor& grad) {
  const SparseTensor& sparse = sparse_of(grad);
  if (!sparse.is_coo()) {
    ops::zero_(sparse.values());
    return grad;
  }
  Dims sizes = sparse.values().sizes();
  sizes[0] = 0;
  return Tensor(SparseTensor::coo(sparse.sizes(), Tensor::empty(Dims{sparse.sparse_dim(), 0}, DType::kInt64),
                                  Tensor::empty(sizes, sparse.dtype(), sparse.device), true));
}

Tensor coalesced_grad(const Tensor& grad) {
  const SparseTensor& sparse = sparse_of(grad);
  return !sparse.is_coo() || sparse.is_coalesced() ? grad : Tensor(coalesced(sparse));
}

double grad_norm(const TensorList& grads, double norm_type) {
  return ops::tensord_grad_norm(elements_to_clip(grads), norm_type);
}

double clip_grad_norm(const TensorList& grads, double max_norm, double norm_type, bool error_if_nonfinite) {
  return ops::tensord_clip_grad_norm_(elements_to_clip(grads), max_norm, norm_type, error_if_nonfinite);
}

void clip_grad_value(const TensorList& grads, double value) {
  ops::tensord_clip_grad_value_(elements_to_clip(grads), value);
}

IMPL("tensord::sgd_step_", kSparseComposite, sgd_step);
IMPL("tensord::adagrad_step_", kSparseComposite, adagrad_step);
IMPL("tensord::sparse_adam_step_", kSparseComposite, sparse_adam_step);
IMPL("tensord::coalesced_grad", kSparseComposite, coalesced_grad);
IMPL("tensord::zeroed_grad_", kSparseComposite, emptied);
IMPL("tensord::grad_norm", kSparseComposite, grad_norm);
IMPL("tensord::clip_grad_norm_", kSparseComposite, clip_grad_norm);
IMPL("tensord::clip_grad_value_", kSparseComposite, clip_grad_value);

}  // namespace
}  // namespace tensord::kernels
